// Package opener opens the backends of StorageBackend objects for the reconcilers. It measures
// and queues calls, so that no worker waits for slow storage.
package opener

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/uuid"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
	backendqueue "github.com/stowage-dev/stowage/internal/backend/queue"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Opener opens backends. All methods can be called concurrently.
type Opener struct {
	*backend.Registry
	// Queue makes and measures the calls. Nil: the caller makes them, and waits.
	Queue *backendqueue.Queue
	// Metrics count what reconcilers find. Nil: nothing is measured.
	Metrics *metrics.Metrics
	// Recycler empties volumes of policy Recycle. Nil: their phase becomes Failed. Token
	// distinguishes this process from all others that recycle.
	Recycler backend.Recycler
	Token    string
}

// New returns an opener. Its queue works until the context ends. Without a registerer nothing
// is measured.
func New(ctx context.Context, backends *backend.Registry, recycler backend.Recycler, registerer prometheus.Registerer) (*Opener, error) {
	o := &Opener{Registry: backends, Recycler: recycler, Token: string(uuid.NewUUID())}
	var err error
	if registerer != nil {
		o.Metrics, err = metrics.New(registerer)
	}
	o.Queue = backendqueue.New(ctx, o.Metrics)
	return o, wrap.Error(err, "registering the metrics of backends")
}

// Open opens the backend of a StorageBackend. Wake must reconcile the caller's object again:
// it is called when a call that returned backend.Queued has an answer.
func (o *Opener) Open(object *stowagev1alpha1.StorageBackend, wake func()) (backend.Backend, error) {
	opened, err := o.Registry.Open(object)
	if err == nil && o.Queue != nil {
		opened = o.Queue.Serve(targetOf(object), opened, wake)
	}
	return opened, err
}

// Direct opens the backend of a StorageBackend. The caller waits for its calls.
func (o *Opener) Direct(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	opened, err := o.Registry.Open(object)
	if err == nil && o.Queue != nil {
		opened = o.Queue.Direct(targetOf(object), opened)
	}
	return opened, err
}

// Renew discards a backend's earlier answers about a volume, which became outdated.
func (o *Opener) Renew(id string) {
	if o.Queue != nil {
		o.Queue.Discard(id)
	}
}

// Forget drops what is kept for a StorageBackend that is gone.
func (o *Opener) Forget(name string) {
	o.Registry.Forget(name)
	if o.Metrics != nil {
		o.Metrics.Forget(name)
	}
}

func targetOf(object *stowagev1alpha1.StorageBackend) backendqueue.Target {
	return backendqueue.Target{
		Name:    "StorageBackend " + object.Name,
		Metric:  object.Name,
		Version: fmt.Sprintf("%s/%d", object.UID, object.Generation),
		Limit:   int(object.Spec.MaxConcurrentOperations),
	}
}
