package reclaim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolume/recycle"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/liveread"
)

// Open opens a backend for calls that a volume waits for: an answer wakes the volume.
type Open func(pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend) (backend.Backend, error)

// Reclaimer applies the reclaim policy to the storage of a volume, once no claim holds it.
type Reclaimer struct {
	client   client.Client
	live     client.Reader
	shared   liveread.Reads
	drivers  drivers.Drivers
	scope    reconciler.Scope
	open     Open
	recycler *recycle.Recycler
	clock    clock.PassiveClock
	events   events.EventRecorder
	recorded *event.Last
}

// New makes a reclaimer.
func New(deps reconciler.Dependencies, open Open, recycler *recycle.Recycler, recorded *event.Last) *Reclaimer {
	return &Reclaimer{
		client: deps.Client, live: deps.Live, shared: deps.Reads, drivers: drivers.New(deps.Client), scope: deps.Scope, open: open, recycler: recycler,
		clock: deps.Clock, events: deps.Events, recorded: recorded,
	}
}

// record records an event of a volume's deletion, unless it equals the last one.
func (r *Reclaimer) record(pv *corev1.PersistentVolume, kind, reason string, err error) {
	if r.recorded.IsNew(client.ObjectKeyFromObject(pv), err.Error()) {
		r.events.Eventf(pv, nil, kind, reason, "Delete", "%v", err)
	}
}
