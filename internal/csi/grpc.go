package csi

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/csi/calls"
)

// Verbosities at which calls are logged: those that do something, and those that only
// ask, of which there are many.
const (
	callVerbosity  = 1
	queryVerbosity = 2
)

// NewGRPCServer makes a server of one driver, without services: it gives errors their
// codes, outlives panics, logs and counts. Of a call it logs the volume's id and the
// result, and nothing else of the request: any of its fields may have secrets.
func NewGRPCServer(driver string, log logr.Logger, measured *calls.Calls) *grpc.Server {
	return grpc.NewServer(grpc.ChainUnaryInterceptor(
		func(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			began := time.Now()
			end := measured.Begin(driver, info.FullMethod)
			ctx = logr.NewContext(ctx, log.WithValues("driver", driver))
			response, err := answer(ctx, request, info, next, log)
			took, method, code := time.Since(began), shortName(info.FullMethod), status.Code(err).String()
			end(code)
			logCall(log.WithValues("driver", driver, "method", method, "code", code, "took", took.String()), request)
			return response, err
		},
	))
}

// logCall logs a call that is over.
func logCall(log logr.Logger, request any) {
	verbosity := callVerbosity
	switch request.(type) {
	case *csispec.NodeGetVolumeStatsRequest, *csispec.NodeGetVolumeHealthRequest:
		verbosity = queryVerbosity
	}
	if of, isOfVolume := request.(interface{ GetVolumeId() string }); isOfVolume {
		log.V(verbosity).Info("called", "volume", of.GetVolumeId())
		return
	}
	log.V(queryVerbosity).Info("called")
}

// answer answers a call, also if the driver panics: other volumes must not suffer for one.
func answer(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler, log logr.Logger) (response any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			log.Error(causeOf(panicked), "panicked", "method", info.FullMethod, "stack", string(debug.Stack()))
			response, err = nil, status.Error(unknownIn(info.FullMethod), "a fault of the driver: the node agent's log has more")
		}
	}()
	response, err = next(ctx, request)
	return response, toStatus(err, info.FullMethod)
}

// causeOf is what may be logged of a panic: its value may have secrets.
func causeOf(panicked any) error {
	if known, isRuntime := panicked.(runtime.Error); isRuntime {
		return known
	}
	return errors.New("a panic of the driver's own")
}
