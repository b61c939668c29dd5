package controllers

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/ephemeral"
	"github.com/stowage-dev/stowage/controllers/nodevolume"
	"github.com/stowage-dev/stowage/controllers/persistentvolume"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/binding"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/protection"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/storagebackend"
	"github.com/stowage-dev/stowage/controllers/storagebackend/audit"
	"github.com/stowage-dev/stowage/controllers/volumeattachment"
	"github.com/stowage-dev/stowage/controllers/volumeattachment/comparison"
	"github.com/stowage-dev/stowage/controllers/volumeattributesclass"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/wake"
)

const (
	// maxRounds is how many passes over everything a world may need to come to rest.
	maxRounds = 30
	// unshown is the number of writes after which the index has never been fed.
	unshown = -1
	// forceDetachAfter is the manager's default.
	forceDetachAfter = 6 * time.Minute
)

// world is a cluster in which a spec decides when reconcilers run: settle runs
// them over everything until nothing changes any more. Its client reads the API
// server itself, fails writes when told to, and counts them.
type world struct {
	*faultyClient
	scope   reconciler.Scope
	storage *fake.Backend
	clock   *clocktesting.FakePassiveClock
	events  *events.FakeRecorder
	// patience is how long a backend is at work before its claim says so.
	patience time.Duration
	// served opens the backends of all reconcilers, and views are how these see the
	// cluster. Specs change them.
	served *opener.Opener
	views  views
	// shown are the objects that the claims' reconciler was shown last, after so many writes.
	shown      []client.Object
	shownAfter int

	claims   *persistentvolumeclaim.Reconciler
	volumes  *persistentvolume.Reconciler
	backends *storagebackend.Reconciler
	audits   *audit.Auditor
	pods     *ephemeral.Reconciler
	classes  *volumeattributesclass.Reconciler
	// disks, locals and adopts run only in specs that are about them.
	disks *nodevolume.DiskReconciler
	// attachments run over what of theirs there is.
	attachments *volumeattachment.Reconciler
	comparisons *comparison.Comparer
	locals      *nodevolume.Reconciler
	adopts      *nodevolume.Adopter
}

// newWorld makes an empty cluster with one served kind of storage, the fake, in
// place of local. The spec's objects are removed after it.
func newWorld(scope reconciler.Scope) *world {
	GinkgoHelper()
	w := &world{
		faultyClient: newFaultyClient(apiServer),
		scope:        scope,
		storage:      fake.New(),
		clock:        clocktesting.NewFakePassiveClock(time.Now()),
	}
	w.restart()
	DeferCleanup(w.empty)
	return w
}

// restart forgets all that reconcilers keep in memory.
func (w *world) restart() {
	w.events, w.shown, w.shownAfter = events.NewFakeRecorder(10000), nil, unshown
	w.served = &opener.Opener{Registry: backend.NewRegistry(
		fake.Kind{For: stowagev1alpha1.LocalType, Backend: w.storage}, fake.Kind{For: stowagev1alpha1.GCEType, Backend: w.storage})}
	w.views = newViews(w)
	w.claims = persistentvolumeclaim.New(w.dependencies(w.views.claims))
	w.volumes = persistentvolume.New(w.dependencies(w.views.volumes), w.claims.Index)
	w.pods = ephemeral.New(w.dependencies(w.views.pods))
	w.classes = volumeattributesclass.New(w.dependencies(w.views.classes))
	w.backends = storagebackend.New(w.dependencies(w.views.backends))
	w.disks = nodevolume.NewDiskReconciler(w.dependencies(w.views.disks))
	w.locals = nodevolume.New(w.dependencies(w.views.locals))
	w.adopts = nodevolume.NewAdopter(w.dependencies(w.views.adopts))
	w.attachments = volumeattachment.New(w.dependencies(w.views.attachments))
	w.comparisons = comparison.New(w.dependencies(w.views.comparisons))
	w.audits = audit.New(w.dependencies(w.views.audits))
}

// dependencies are those of a reconciler that sees the cluster in a view.
func (w *world) dependencies(of *view) reconciler.Dependencies {
	return reconciler.Dependencies{
		Client: of, Live: &of.live, Reads: liveread.New(&of.live), Storage: w.served, Events: w.events,
		Clock: w.clock, Patience: w.patience, Scope: w.scope, Namespace: corev1.NamespaceDefault, ForceDetachAfter: forceDetachAfter,
	}
}

// binder has the steps in which a claim is bound: some specs take one of them late.
func (w *world) binder() *binding.Binder {
	deps := w.dependencies(w.views.claims)
	return binding.New(deps, w.claims.Index, protection.New(deps))
}

// create makes objects in the cluster, with their status.
func (w *world) create(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		status := object.DeepCopyObject().(client.Object)
		Expect(w.direct.Create(context.Background(), object)).To(Succeed())
		if node, isNode := object.(*corev1.Node); isNode {
			node.Status = status.(*corev1.Node).Status
			Expect(w.direct.Status().Update(context.Background(), node)).To(Succeed())
		}
	}
}

// settle runs all reconcilers over all objects until a whole round writes
// nothing. Errors are what faults and waiting are made of: a round goes on.
func (w *world) settle() {
	GinkgoHelper()
	w.settleBy(w.round)
}

// settleBy runs rounds until one writes nothing.
func (w *world) settleBy(round func() error) {
	GinkgoHelper()
	for range maxRounds {
		before := w.written
		_ = round()
		if w.written == before {
			return
		}
	}
	Fail("the cluster did not come to rest")
}

// round runs all reconcilers once over all objects.
func (w *world) round() error {
	ctx := context.Background()
	w.shownAfter = unshown
	var failures []error
	for _, object := range w.all(&stowagev1alpha1.StorageBackendList{}) {
		_, err := w.backends.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
		_, err = w.audits.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
		_, err = w.comparisons.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	for _, object := range w.all(&corev1.PersistentVolumeClaimList{}) {
		w.feedWrites()
		_, err := w.claims.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	w.feedWrites()
	for _, object := range w.all(&corev1.PersistentVolumeList{}) {
		_, err := w.volumes.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	for _, object := range w.all(&stowagev1alpha1.NodeRecyclingList{}) {
		_, err := w.volumes.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	for _, object := range w.all(&storagev1.VolumeAttachmentList{}) {
		_, err := w.attachments.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	for _, object := range w.all(&storagev1.VolumeAttributesClassList{}) {
		_, err := w.classes.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// feedWrites feeds the index after a write. Nothing else changes an object within a round.
func (w *world) feedWrites() {
	if w.shownAfter != w.written {
		w.feedIndex()
	}
}

// feedIndex does what the informer does.
func (w *world) feedIndex() {
	w.shownAfter = w.written
	objects := append(w.all(&corev1.PersistentVolumeList{}), w.all(&corev1.PersistentVolumeClaimList{})...)
	there := map[types.UID]bool{}
	for _, object := range objects {
		there[object.GetUID()] = true
	}
	for _, object := range w.shown {
		if !there[object.GetUID()] {
			w.show(object, true)
		}
	}
	for _, object := range objects {
		w.show(object, false)
	}
	w.shown = objects
}

func (w *world) show(object client.Object, gone bool) {
	switch typed := object.(type) {
	case *corev1.PersistentVolumeClaim:
		w.claims.NoteAsking(typed, gone)
	case *corev1.PersistentVolume:
		if gone {
			w.claims.Index.Remove(typed.Name)
		} else {
			w.claims.Index.Put(typed)
		}
	}
}

// get reads an object as it is now; gone tells whether it exists.
func (w *world) get(object client.Object) {
	GinkgoHelper()
	Expect(w.direct.Get(context.Background(), client.ObjectKeyFromObject(object), object)).To(Succeed())
}

func (w *world) gone(object client.Object) bool {
	return w.direct.Get(context.Background(), client.ObjectKeyFromObject(object), object) != nil
}

// delete deletes an object, as a user does; finalizers may keep it.
func (w *world) delete(object client.Object) {
	GinkgoHelper()
	Expect(w.direct.Delete(context.Background(), object, client.GracePeriodSeconds(0))).To(Succeed())
}

// update changes an object, as a user does.
func update[T client.Object](w *world, object T, change func(T)) {
	GinkgoHelper()
	w.get(object)
	change(object)
	Expect(w.direct.Update(context.Background(), object)).To(Succeed())
}

// empty removes everything that specs make, finalizers or not.
func (w *world) empty() {
	w.faults = nil
	for _, list := range []client.ObjectList{
		&storagev1.VolumeAttachmentList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &corev1.NodeList{},
		&stowagev1alpha1.StorageBackendList{}, &stowagev1alpha1.NodeVolumeList{}, &stowagev1alpha1.NodeRecyclingList{},
		&stowagev1alpha1.NodeDiskList{}, &storagev1.CSIStorageCapacityList{},
		&storagev1.StorageClassList{}, &storagev1.VolumeAttributesClassList{},
	} {
		for _, object := range w.all(list) {
			if len(object.GetFinalizers()) > 0 {
				bare := object.DeepCopyObject().(client.Object)
				bare.SetFinalizers(nil)
				_ = w.direct.Patch(context.Background(), bare, client.MergeFrom(object))
			}
			_ = w.direct.Delete(context.Background(), object, client.GracePeriodSeconds(0))
		}
	}
}

// condition is the claim's condition Bindable, as a user reads it.
func (w *world) condition(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimCondition {
	GinkgoHelper()
	w.get(claim)
	for _, condition := range claim.Status.Conditions {
		if condition.Type == stowagev1alpha1.BindableCondition {
			return condition
		}
	}
	return corev1.PersistentVolumeClaimCondition{}
}

// told are the events sent since it was last asked.
func (w *world) told() []string {
	var told []string
	for {
		select {
		case event := <-w.events.Events:
			told = append(told, event)
		default:
			return told
		}
	}
}
