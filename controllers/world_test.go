package controllers

import (
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/csicapacity"
	"github.com/stowage-dev/stowage/controllers/ephemeral"
	"github.com/stowage-dev/stowage/controllers/nodevolume"
	"github.com/stowage-dev/stowage/controllers/persistentvolume"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/binding"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/protection"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/storagebackend"
	"github.com/stowage-dev/stowage/controllers/storagebackend/audit"
	"github.com/stowage-dev/stowage/controllers/storageclass"
	"github.com/stowage-dev/stowage/controllers/volumeattachment"
	"github.com/stowage-dev/stowage/controllers/volumeattachment/comparison"
	"github.com/stowage-dev/stowage/controllers/volumeattributesclass"
	"github.com/stowage-dev/stowage/controllers/volumegroupsnapshot"
	"github.com/stowage-dev/stowage/controllers/volumegroupsnapshotcontent"
	"github.com/stowage-dev/stowage/controllers/volumesnapshot"
	"github.com/stowage-dev/stowage/controllers/volumesnapshotcontent"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/leadership"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

const (
	// maxRounds is how many passes over everything a world may need to come to rest.
	maxRounds = 30
	// unfed is the number of writes after which the index has never been fed.
	unfed = -1
	// forceDetachAfter is the manager's default.
	forceDetachAfter = 6 * time.Minute
)

// world is a cluster in which a spec decides when reconcilers run: settle runs them over
// everything until nothing changes any more. Its client reads the API server itself, counts
// writes, and fails those that a spec chooses.
type world struct {
	*faultyClient
	scope   reconciler.Scope
	storage *fake.Backend
	// driver is a CSI driver that keeps its volumes in storage.
	driver *fake.CSI
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	// log is that of all reconcilers. Its lines at level 0 are in lines.
	log   logr.Logger
	lines []string
	// patience is how long a backend is at work before its claim says so.
	patience time.Duration
	// served opens the backends of all reconcilers, and views are how these see the
	// cluster. Specs change them.
	served *opener.Opener
	views  views
	// prepared and deleted are what the reconcilers of nodes and of attachments share.
	prepared, deleted *attachintent.Writes
	// leads is whether the manager leads for some seconds more. Nil: it does.
	leads func() bool
	// term is the one in which the manager leads.
	term leadership.Term
	// fed are the objects that the index of the claims' reconciler was fed last, after so many
	// writes.
	fed      []client.Object
	fedAfter int

	claims   *persistentvolumeclaim.Reconciler
	volumes  *persistentvolume.Reconciler
	backends *storagebackend.Reconciler
	audits   *audit.Auditor
	pods     *ephemeral.Reconciler
	classes  *volumeattributesclass.Reconciler
	// storageClasses releases deleted StorageClasses.
	storageClasses *storageclass.Reconciler
	// disks, locals and adopts run only in specs that are about them.
	disks *nodevolume.DiskReconciler
	// capacities and refreshes run only in specs that are about them, too.
	capacities *csicapacity.Reconciler
	refreshes  *csicapacity.Refresher
	// attachments run over what of theirs there is.
	attachments *volumeattachment.Reconciler
	comparisons *comparison.Comparer
	locals      *nodevolume.Reconciler
	// unserved is why VolumeSnapshots are not served; "" if they are.
	unserved string
	// snapshots runs only in specs that are about it.
	snapshots *volumesnapshotcontent.Reconciler
	// groups runs only in specs that are about it, too.
	groups *volumegroupsnapshotcontent.Reconciler
	// binds runs only in specs that are about it, too.
	binds *volumesnapshot.Reconciler
	// groupBinds runs with binds.
	groupBinds *volumegroupsnapshot.Reconciler
	adopts     *nodevolume.Adopter
}

// newWorld makes an empty cluster with one served kind of storage, the fake, in
// place of local. The spec's objects are removed after it.
func newWorld(scope reconciler.Scope) *world {
	GinkgoHelper()
	w := &world{
		faultyClient: newFaultyClient(mirrored.reading(), mirrored.writing(managers[scope])),
		scope:        scope,
		storage:      fake.New(),
		clock:        clocktesting.NewFakePassiveClock(time.Now()),
	}
	w.log = funcr.New(func(_, line string) { w.lines = append(w.lines, line) }, funcr.Options{})
	w.restart()
	DeferCleanup(w.empty)
	return w
}

// restart forgets all that reconcilers keep in memory.
func (w *world) restart() {
	w.events, w.fed, w.fedAfter = events.NewFakeRecorder(10000), nil, unfed
	if w.driver == nil {
		w.driver = fake.NewCSI(w.storage)
	}
	w.served = &opener.Opener{Registry: backend.NewRegistry(
		fake.Kind{For: stowagev1alpha1.LocalType, Backend: w.storage}, fake.Kind{For: stowagev1alpha1.GCEType, Backend: w.storage}, w.driver)}
	w.views, w.prepared, w.deleted = newViews(w), attachintent.NewWrites(w.clock, w.isLeader), attachintent.NewWrites(w.clock, w.isLeader)
	w.claims = persistentvolumeclaim.New(w.dependencies(w.views.claims))
	w.volumes = persistentvolume.New(w.dependencies(w.views.volumes), w.claims.Index)
	w.pods = ephemeral.New(w.dependencies(w.views.pods))
	w.classes = volumeattributesclass.New(w.dependencies(w.views.classes))
	w.storageClasses = storageclass.New(w.dependencies(w.views.storageClasses))
	w.backends = storagebackend.New(w.dependencies(w.views.backends), func() (string, bool) { return w.unserved, true })
	w.snapshots = volumesnapshotcontent.New(w.dependencies(w.views.snapshots))
	w.groups = volumegroupsnapshotcontent.New(w.dependencies(w.views.groups))
	kept := snapshotbinding.New(w.views.binds, &w.views.binds.live)
	w.binds = volumesnapshot.New(w.dependencies(w.views.binds), kept)
	w.groupBinds = volumegroupsnapshot.New(w.dependencies(w.views.groupBinds), kept)
	w.disks = nodevolume.NewDiskReconciler(w.dependencies(w.views.disks))
	w.capacities = csicapacity.New(w.dependencies(w.views.capacities))
	w.refreshes = csicapacity.NewRefresher(w.dependencies(w.views.refreshes))
	w.locals = nodevolume.New(w.dependencies(w.views.locals))
	w.adopts = nodevolume.NewAdopter(w.dependencies(w.views.adopts))
	w.attachments = volumeattachment.New(w.dependencies(w.views.attachments))
	w.comparisons = comparison.New(w.dependencies(w.views.comparisons))
	w.audits = audit.New(w.dependencies(w.views.audits))
}

// dependencies are those of a reconciler that sees the cluster in a view.
func (w *world) dependencies(of *view) reconciler.Dependencies {
	return reconciler.Dependencies{
		Client: of, Live: &of.live, Reads: liveread.New(&of.live), Prepared: w.prepared, Deleted: w.deleted, Leads: w.isLeader, Term: w.inTerm, Storage: w.served, Events: event.Logged(w.events, w.log),
		Clock: w.clock, Patience: w.patience, Scope: w.scope, Namespace: apiserver.Namespace, ForceDetachAfter: forceDetachAfter,
	}
}

func (w *world) isLeader() bool { return w.leads == nil || w.leads() }

func (w *world) inTerm() (leadership.Term, bool) { return w.term, w.isLeader() }

// binder has the steps in which a claim is bound: some specs take one of them late.
func (w *world) binder() *binding.Binder {
	deps := w.dependencies(w.views.claims)
	return binding.New(deps, w.claims.Index, protection.New(deps))
}
