package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	backendqueue "github.com/stowage-dev/stowage/internal/backend/queue"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
)

// storage opens the backends of StorageBackend objects for the reconcilers: calls
// are measured, and made in turn, so that no worker waits for slow storage.
type storage struct {
	*backend.Registry
	// dispatcher makes the calls. Nil: the caller does, and waits.
	dispatcher *backendqueue.Dispatcher
	// metrics measure them. Nil: nothing does.
	metrics *metrics.Metrics
	// recycler empties volumes of policy Recycle. Nil: nobody does. Token tells this
	// process from all others that do.
	recycler backend.Recycler
	token    string
}

func newStorage(ctx context.Context, options Options) (storage, error) {
	s := storage{
		Registry: options.Backends, dispatcher: backendqueue.New(ctx),
		recycler: options.Recycler, token: string(uuid.NewUUID()),
	}
	if options.Metrics == nil {
		return s, nil
	}
	var err error
	s.metrics, err = metrics.New(options.Metrics)
	return s, wrap(err, "registering the metrics of backends")
}

// open makes the backend that an object describes. Wake has whoever opens it look
// again, once there is an answer to a call that was told backend.Queued.
func (s storage) open(object *stowagev1alpha1.StorageBackend, wake func()) (backend.Backend, error) {
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
func (s storage) direct(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	opened, err := s.Open(object)
	if err == nil && s.metrics != nil {
		opened = s.metrics.Measure(object.Name, opened)
	}
	return opened, err
}

// renew says that something happened to a volume, of which a backend's earlier answers
// don't know.
func (s storage) renew(id string) {
	if s.dispatcher != nil {
		s.dispatcher.Renew(id)
	}
}

func laneOf(object *stowagev1alpha1.StorageBackend) backendqueue.Lane {
	return backendqueue.Lane{
		Backend: "StorageBackend " + object.Name,
		Version: fmt.Sprintf("%s/%d", object.UID, object.Generation),
		Limit:   int(object.Spec.MaxConcurrentOperations),
	}
}

// openFor opens a backend for calls that a claim waits for.
func (r *PersistentVolumeClaimReconciler) openFor(claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	key := client.ObjectKeyFromObject(claim)
	return r.storage.open(object, func() { r.waking.add(key) })
}

// openFor opens a backend for calls that a volume waits for.
func (r *PersistentVolumeReconciler) openFor(pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	key := client.ObjectKeyFromObject(pv)
	return r.storage.open(object, func() { r.waking.add(key) })
}
