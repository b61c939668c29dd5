package csi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Verbosities at which calls are logged: those that do something, and those that only
// ask, of which there are many.
const (
	callVerbosity  = 1
	queryVerbosity = 2
)

// Calls counts the calls of all drivers, under the names of
// github.com/kubernetes-csi/csi-lib-utils/metrics, which dashboards of CSI drivers know. Of a nil
// one, all methods do nothing.
type Calls struct{ seconds *prometheus.HistogramVec }

// NewCalls makes the metrics and registers them.
func NewCalls(registerer prometheus.Registerer) (*Calls, error) {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "csi_plugin_operations_seconds",
		Help:    "How long a call of the kubelet took, by driver, method and gRPC code.",
		Buckets: []float64{.01, .1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
	}, []string{"driver_name", "method_name", "grpc_status_code"})
	if err := registerer.Register(seconds); err != nil {
		return nil, fmt.Errorf("registering metrics of CSI calls: %w", err)
	}
	return &Calls{seconds: seconds}, nil
}

func (c *Calls) count(driver, method, code string, took time.Duration) {
	if c != nil {
		c.seconds.WithLabelValues(driver, method, code).Observe(took.Seconds())
	}
}

// NewGRPCServer makes a server of one driver, without services: it gives errors their
// codes, outlives panics, logs and counts. Of a call it logs the volume's id and the
// result, and nothing else of the request: any of its fields may have secrets.
func NewGRPCServer(driver string, log logr.Logger, calls *Calls) *grpc.Server {
	return grpc.NewServer(grpc.ChainUnaryInterceptor(
		func(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			began := time.Now()
			ctx = logr.NewContext(ctx, log.WithValues("driver", driver))
			response, err := answer(ctx, request, info, next, log)
			took, method, code := time.Since(began), shortName(info.FullMethod), status.Code(err).String()
			calls.count(driver, info.FullMethod, code, took)
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
