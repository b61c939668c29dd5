package controllers

import (
	"github.com/prometheus/client_golang/prometheus"

	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/uuid"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/dispatch"
	"github.com/stowage-dev/stowage/internal/backend/measure"
)

// storage opens the backends of StorageBackend objects for the reconcilers: calls
// are measured, and made in turn, so that no worker waits for slow storage.
type storage struct {
	*backend.Registry
	// dispatcher makes the calls. Nil: the caller does, and waits.
	dispatcher *dispatch.Dispatcher
	// metrics measure them. Nil: nothing does.
	metrics *measure.Metrics
	// recycler empties volumes of policy Recycle. Nil: nobody does. Token tells this
	// process from all others that do.
	recycler backend.Recycler
	token    string
}

func newStorage(ctx context.Context, backends *backend.Registry, recycler backend.Recycler, metrics prometheus.Registerer) (*storage, error) {
	s := &storage{
		Registry: backends, dispatcher: dispatch.New(ctx),
		recycler: recycler, token: string(uuid.NewUUID()),
	}
	if metrics == nil {
		return s, nil
	}
	var err error
	s.metrics, err = measure.New(metrics)
	return s, wrap(err, "registering the metrics of backends")
}

// open makes the backend that an object describes. Wake has whoever opens it look
// again, once there is an answer to a call that was told backend.Queued.
func (s *storage) open(object *stowagev1alpha1.StorageBackend, wake func()) (backend.Backend, error) {
	opened, err := s.direct(object)
	if err != nil {
		return nil, err
	}
	if s.dispatcher != nil {
		opened = s.dispatcher.Serve(laneOf(object), opened, wake)
	}
	return opened, nil
}

// direct makes the backend that an object describes, whose calls the caller waits for.
func (s *storage) direct(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	opened, err := s.Open(object)
	if err == nil && s.metrics != nil {
		opened = s.metrics.Measure(object.Name, opened)
	}
	return opened, err
}

// renew says that something happened to a volume, of which a backend's earlier answers
// don't know.
func (s *storage) renew(id string) {
	if s.dispatcher != nil {
		s.dispatcher.Renew(id)
	}
}

func laneOf(object *stowagev1alpha1.StorageBackend) dispatch.Lane {
	return dispatch.Lane{
		Backend: "StorageBackend " + object.Name,
		Version: fmt.Sprintf("%s/%d", object.UID, object.Generation),
		Limit:   int(object.Spec.MaxConcurrentOperations),
	}
}
