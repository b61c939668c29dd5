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
	"github.com/stowage-dev/stowage/internal/backend/dispatch"
	"github.com/stowage-dev/stowage/internal/backend/measure"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Opener opens the backends of StorageBackend objects for the reconcilers: calls
// are measured, and made in turn, so that no worker waits for slow storage.
type Opener struct {
	*backend.Registry
	// Dispatcher makes the calls. Nil: the caller does, and waits.
	Dispatcher *dispatch.Dispatcher
	// Metrics measure them. Nil: nothing does.
	Metrics *measure.Metrics
	// Recycler empties volumes of policy Recycle. Nil: nobody does. Token tells this
	// process from all others that do.
	Recycler backend.Recycler
	Token    string
}

func New(ctx context.Context, backends *backend.Registry, recycler backend.Recycler, metrics prometheus.Registerer) (*Opener, error) {
	s := &Opener{
		Registry: backends, Dispatcher: dispatch.New(ctx),
		Recycler: recycler, Token: string(uuid.NewUUID()),
	}
	if metrics == nil {
		return s, nil
	}
	var err error
	s.Metrics, err = measure.New(metrics)
	return s, wrap.Error(err, "registering the metrics of backends")
}

// Open makes the backend that an object describes. Wake has whoever opens it look
// again, once there is an answer to a call that was told backend.Queued.
func (s *Opener) Open(object *stowagev1alpha1.StorageBackend, wake func()) (backend.Backend, error) {
	opened, err := s.Direct(object)
	if err != nil {
		return nil, err
	}
	if s.Dispatcher != nil {
		opened = s.Dispatcher.Serve(laneOf(object), opened, wake)
	}
	return opened, nil
}

// Direct makes the backend that an object describes, whose calls the caller waits for.
func (s *Opener) Direct(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	opened, err := s.Registry.Open(object)
	if err == nil && s.Metrics != nil {
		opened = s.Metrics.Measure(object.Name, opened)
	}
	return opened, err
}

// Renew says that something happened to a volume, of which a backend's earlier answers
// don't know.
func (s *Opener) Renew(id string) {
	if s.Dispatcher != nil {
		s.Dispatcher.Renew(id)
	}
}

func laneOf(object *stowagev1alpha1.StorageBackend) dispatch.Lane {
	return dispatch.Lane{
		Backend: "StorageBackend " + object.Name,
		Version: fmt.Sprintf("%s/%d", object.UID, object.Generation),
		Limit:   int(object.Spec.MaxConcurrentOperations),
	}
}
