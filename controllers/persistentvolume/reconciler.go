package persistentvolume

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolume/reclaim"
	"github.com/stowage-dev/stowage/controllers/persistentvolume/recycle"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/wake"
)

// Reconciler keeps the phases of volumes. Reclaimer and Recycler have the steps after the
// deletion of their claim.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	claims   *liveread.Claims
	scope    reconciler.Scope
	storage  *opener.Opener
	index    *binder.Index
	waking   wake.Source
	recorded event.Last
	events   events.EventRecorder
	// unusable has the last event of each volume that pods can't use as it is.
	unusable event.Last
	answers  answers

	recycler  *recycle.Recycler
	reclaimer *reclaim.Reclaimer
}

// New makes the reconciler. It shares the index with the reconciler of claims.
func New(deps reconciler.Dependencies, index *binder.Index) *Reconciler {
	r := &Reconciler{client: deps.Client, live: deps.Live, claims: deps.Reads.Claims, scope: deps.Scope, storage: deps.Storage, index: index, events: deps.Events}
	r.recycler = recycle.New(deps, r.waking.Add, &r.recorded)
	r.reclaimer = reclaim.New(deps, r.openFor, r.recycler, &r.recorded)
	return r
}

// openFor opens a backend for calls that a volume waits for.
func (r *Reconciler) openFor(pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	key := client.ObjectKeyFromObject(pv)
	return r.storage.Open(object, func() { r.waking.Add(key) })
}
