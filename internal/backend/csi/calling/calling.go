// Package calling makes one call of a CSI driver, within its time, and says what an error means. All
// calls of the CSI backend go through it. It knows no volume, and repeats nothing.
package calling

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/wire"
	"github.com/stowage-dev/stowage/internal/message"
)

// MaxMessage bounds what is passed on of a driver's message, in bytes.
const MaxMessage = 400

// Driver is what calls and their errors need of a driver.
type Driver struct {
	Name, Endpoint string
	// Timeout bounds each call.
	Timeout time.Duration
}

// Call makes one call of a driver.
func Call[Request, Answer any](
	ctx context.Context, of Driver, method func(context.Context, *Request, ...grpc.CallOption) (*Answer, error), request *Request,
) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, of.Timeout)
	defer cancel()
	return method(ctx, request)
}

// ErrorOf is the error of a call that changes something. Another kind in place of that of the code
// is for what the method's own codes mean.
func (d Driver) ErrorOf(method string, err error, instead map[codes.Code]backend.ErrorKind) error {
	answered := status.Convert(err)
	kind := wire.KindOf(answered.Code())
	if other, is := instead[answered.Code()]; is {
		kind = other
	}
	if answered.Code() == codes.ResourceExhausted && strings.Contains(answered.Message(), "larger than max") {
		kind = "" // gRPC itself says so, after the driver's work
	}
	if kind == "" {
		return fmt.Errorf("%s", d.text(method, answered))
	}
	return kind.Errorf("%s", d.text(method, answered))
}

// Unanswered is the error of a call that changes nothing.
func (d Driver) Unanswered(method string, err error) error {
	answered := status.Convert(err)
	if answered.Code() == codes.Unimplemented {
		return backend.Invalid.Errorf("%s", d.text(method, answered))
	}
	return backend.Unavailable.Errorf("%s", d.text(method, answered))
}

func (d Driver) text(method string, answered *status.Status) string {
	said := message.Cut(answered.Message(), MaxMessage)
	switch answered.Code() {
	case codes.Unavailable:
		return fmt.Sprintf("driver %s doesn't answer %s at %s: look whether its container runs beside the manager (%s)", d.Name, method, d.Endpoint, said)
	case codes.DeadlineExceeded:
		return fmt.Sprintf("driver %s has not answered %s within %s: the call is repeated (%s)", d.Name, method, d.Timeout, said)
	default:
		return fmt.Sprintf("driver %s answers %s with %s: %s", d.Name, method, answered.Code(), said)
	}
}
