// Package measured counts and logs the calls of CSI drivers, as their sidecars do. Package csi makes
// the calls. It decides nothing, and a log line has no secret of a request.
package measured

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/message"
)

// maxRequest bounds what the log has of a request, in bytes.
const maxRequest = 4 << 10

// Calls measures the calls of drivers, under the name and with the labels that sidecars have for
// theirs: dashboards of a driver stay as they are. It also logs them, for developers. All methods can
// be called concurrently.
type Calls struct {
	seconds *prometheus.HistogramVec
	log     logr.Logger
}

// New makes the metric and registers it.
func New(registerer prometheus.Registerer, log logr.Logger) (*Calls, error) {
	calls := &Calls{log: log, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "csi_sidecar_operations_seconds",
		Help:    "How long a call of a CSI driver took, by driver, method and gRPC code, as sidecars of the driver measure it.",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
	}, []string{"driver_name", "method_name", "grpc_status_code"})}
	if err := registerer.Register(calls.seconds); err != nil {
		return nil, fmt.Errorf("registering the metric of calls of CSI drivers: %w", err)
	}
	return calls, nil
}

// Of returns what measures and logs the calls of one driver.
func (c *Calls) Of(driver string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, answer any, connection *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		began := time.Now()
		err := call(ctx, method, request, answer, connection, options...)
		took, code := time.Since(began), codeOf(err)
		c.seconds.WithLabelValues(driver, method, code).Observe(took.Seconds())
		if log := c.log.V(1); log.Enabled() {
			// The text is made here, and not by the log: each way to log a request would have to leave out its secrets.
			log.Info("called a CSI driver", "driver", driver, "method", method, "code", code, "took", took.String(),
				"request", message.Cut(protosanitizer.StripSecrets(request).String(), maxRequest))
		}
		return err
	}
}

// codeOf is the name of a call's code. A driver may answer with any number: those that gRPC doesn't know
// have one name, or a driver could fill the memory with series.
func codeOf(err error) string {
	code := status.Code(err)
	if code > codes.Unauthenticated {
		code = codes.Unknown
	}
	return code.String()
}

// Forget drops the series of a driver.
func (c *Calls) Forget(driver string) {
	c.seconds.DeletePartialMatch(prometheus.Labels{"driver_name": driver})
}
