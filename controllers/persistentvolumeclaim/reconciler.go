package persistentvolumeclaim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/binding"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/datasource"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/expansion"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/modification"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/protection"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/waiting"
	"github.com/stowage-dev/stowage/internal/wake"
)

// Reconciler brings claims as far as possible. Binder, Provisioner, Expander, Modifier and
// Protector have the steps; the reconciler has their order, and records why a claim waits.
type Reconciler struct {
	client  client.Client
	scope   reconciler.Scope
	drivers drivers.Drivers
	storage *opener.Opener
	// Index has the volumes and the pending claims. SetupWithManager connects an informer that
	// fills it.
	Index   *binder.Index
	waking  wake.Source
	refresh refresh
	// patience limits the wait for backends that are at work.
	patience patience
	events   events.EventRecorder
	recorded event.Last
	waiting  *waiting.Claims
	// WatchSnapshots makes snapshots wake claims, too. SetupWithManager sets it. It is called once the API
	// server serves snapshots, which may be at any time.
	WatchSnapshots func() error
	// rooms wakes the claims of a backend after its disks got more free space.
	rooms wake.Rounds

	protector   *protection.Protector
	sources     *datasource.Finder
	binder      *binding.Binder
	provisioner *provisioning.Provisioner
	expander    *expansion.Expander
	modifier    *modification.Modifier
}

// New makes a reconciler with an empty index.
func New(deps reconciler.Dependencies) *Reconciler {
	r := &Reconciler{
		client:    deps.Client,
		scope:     deps.Scope,
		drivers:   drivers.New(deps.Client),
		storage:   deps.Storage,
		refresh:   refresh{clock: deps.Clock},
		patience:  patience{clock: deps.Clock, lasts: deps.Patience},
		rooms:     wake.Rounds{Clock: clock.RealClock{}, Each: roomEach, Rest: roomRest},
		events:    deps.Events,
		waiting:   deps.Waiting,
		protector: protection.New(deps),
	}
	r.Index = binder.NewIndex(r.waking.Add)
	r.binder = binding.New(deps, r.Index, r.protector)
	r.sources = datasource.New(deps, r.openFor)
	r.provisioner = provisioning.New(deps, provisioning.Parts{
		Index: r.Index, Open: r.openFor, UntilRefresh: r.refresh.left, Binder: r.binder, Protector: r.protector, Sources: r.sources,
	})
	r.expander = expansion.New(deps, r.openFor)
	r.modifier = modification.New(deps, r.openFor)
	return r
}

// adjust grows the volume of a bound claim, and changes its attributes. What one of the two waits for
// doesn't hold up the other.
func (r *Reconciler) adjust(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	grows, err := r.expander.Expand(ctx, scope)
	if err != nil {
		return nil, err
	}
	changes, err := r.modifier.Modify(ctx, scope)
	return step.Sooner(grows, changes), err
}

// openFor opens a backend for calls that a claim waits for.
func (r *Reconciler) openFor(claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	key := client.ObjectKeyFromObject(claim)
	return r.storage.Open(object, func() { r.waking.Add(key) })
}
