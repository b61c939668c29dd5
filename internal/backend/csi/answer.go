package csi

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/wire"
	"github.com/stowage-dev/stowage/internal/message"
)

// maxMessage bounds what is passed on of a driver's message, in bytes.
const maxMessage = 400

// call makes one call of the driver, within the timeout of the spec.
func call[Request, Answer any](
	ctx context.Context, spec settings, method func(context.Context, *Request, ...grpc.CallOption) (*Answer, error), request *Request,
) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, spec.timeout)
	defer cancel()
	return method(ctx, request)
}

// errorOf is the error of a call that changes something. Another kind in place of that of the code
// is for what the method's own codes mean.
func (s settings) errorOf(method string, err error, instead map[codes.Code]backend.ErrorKind) error {
	answered := status.Convert(err)
	kind := wire.KindOf(answered.Code())
	if other, is := instead[answered.Code()]; is {
		kind = other
	}
	if answered.Code() == codes.ResourceExhausted && strings.Contains(answered.Message(), "larger than max") {
		kind = "" // gRPC itself says so, after the driver's work
	}
	if kind == "" {
		return fmt.Errorf("%s", s.text(method, answered))
	}
	return kind.Errorf("%s", s.text(method, answered))
}

// unanswered is the error of a call that changes nothing.
func (s settings) unanswered(method string, err error) error {
	answered := status.Convert(err)
	if answered.Code() == codes.Unimplemented {
		return backend.Invalid.Errorf("%s", s.text(method, answered))
	}
	return backend.Unavailable.Errorf("%s", s.text(method, answered))
}

func (s settings) text(method string, answered *status.Status) string {
	said := message.Cut(answered.Message(), maxMessage)
	switch answered.Code() {
	case codes.Unavailable:
		return fmt.Sprintf("driver %s doesn't answer %s at %s: look whether its container runs beside the manager (%s)", s.Driver, method, s.Endpoint, said)
	case codes.DeadlineExceeded:
		return fmt.Sprintf("driver %s has not answered %s within %s: the call is repeated (%s)", s.Driver, method, s.timeout, said)
	default:
		return fmt.Sprintf("driver %s answers %s with %s: %s", s.Driver, method, answered.Code(), said)
	}
}
