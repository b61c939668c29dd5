package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
	backendqueue "github.com/stowage-dev/stowage/internal/backend/queue"
)

// storage opens the backends of StorageBackend objects for the reconcilers: calls
// are measured, and made in turn, so that no worker waits for slow storage.
type storage struct {
	*backend.Registry
	// queue makes and measures the calls. Nil: the caller makes them, and waits.
	queue *backendqueue.Queue
	// metrics are of what reconcilers find out. Nil: nothing is measured.
	metrics *metrics.Metrics
	// recycler empties volumes of policy Recycle. Nil: nobody does. Token tells this
	// process from all others that do.
	recycler backend.Recycler
	token    string
}

func newStorage(ctx context.Context, options Options) (storage, error) {
	s := storage{Registry: options.Backends, recycler: options.Recycler, token: string(uuid.NewUUID())}
	var err error
	if options.Metrics != nil {
		s.metrics, err = metrics.New(options.Metrics)
	}
	s.queue = backendqueue.New(ctx, s.metrics)
	return s, wrap(err, "registering the metrics of backends")
}

// open makes the backend that an object describes. Wake has whoever opens it look
// again, once there is an answer to a call that was told backend.Queued.
func (s storage) open(object *stowagev1alpha1.StorageBackend, wake func()) (backend.Backend, error) {
	opened, err := s.Open(object)
	if err == nil && s.queue != nil {
		opened = s.queue.Serve(targetOf(object), opened, wake)
	}
	return opened, err
}

// direct makes the backend that an object describes, whose calls the caller waits for.
func (s storage) direct(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	opened, err := s.Open(object)
	if err == nil && s.queue != nil {
		opened = s.queue.Direct(targetOf(object), opened)
	}
	return opened, err
}

// renew says that something happened to a volume, of which a backend's earlier answers
// don't know.
func (s storage) renew(id string) {
	if s.queue != nil {
		s.queue.Discard(id)
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
