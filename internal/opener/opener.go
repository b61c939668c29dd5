// Package opener opens the backends of StorageBackend objects for the reconcilers. Calls
// are measured, and made in turn, so that no worker waits for slow storage.
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
	// Metrics are of what reconcilers find out. Nil: nothing is measured.
	Metrics *metrics.Metrics
	// Recycler empties volumes of policy Recycle. Nil: they are given up. Token tells
	// this process from all others that recycle.
	Recycler backend.Recycler
	Token    string
}

// New makes an opener whose queue works until the context ends. Without a registerer
// nothing is measured.
func New(ctx context.Context, backends *backend.Registry, recycler backend.Recycler, registerer prometheus.Registerer) (*Opener, error) {
	o := &Opener{Registry: backends, Recycler: recycler, Token: string(uuid.NewUUID())}
	var err error
	if registerer != nil {
		o.Metrics, err = metrics.New(registerer)
	}
	o.Queue = backendqueue.New(ctx, o.Metrics)
	return o, wrap.Error(err, "registering the metrics of backends")
}

// Open makes the backend that an object describes. Wake has the caller look again, once
// there is an answer to a call that returned backend.Queued.
func (o *Opener) Open(object *stowagev1alpha1.StorageBackend, wake func()) (backend.Backend, error) {
	opened, err := o.Registry.Open(object)
	if err == nil && o.Queue != nil {
		opened = o.Queue.Serve(targetOf(object), opened, wake)
	}
	return opened, err
}

// Direct makes the backend that an object describes, whose calls the caller waits for.
func (o *Opener) Direct(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	opened, err := o.Registry.Open(object)
	if err == nil && o.Queue != nil {
		opened = o.Queue.Direct(targetOf(object), opened)
	}
	return opened, err
}

// Renew says that something happened to a volume, of which a backend's earlier answers
// don't know.
func (o *Opener) Renew(id string) {
	if o.Queue != nil {
		o.Queue.Discard(id)
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
