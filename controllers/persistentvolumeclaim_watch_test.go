package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("Of what happens to claims", func() {
	var (
		w       *world
		waiting wake.Queue
	)

	BeforeEach(func() {
		w = newWorldIn(newMemory())
		waiting = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		DeferCleanup(waiting.ShutDown)
	})

	It("a claim recreated between two watches keeps no volume from others", func(ctx SpecContext) {
		old, fresh := Claim(ClaimUID("one"), AskingFor("v")), Claim(ClaimUID("two"))
		events := w.claims.ClaimEvents()
		w.claims.Index.Put(Volume("v"))
		events.Create(ctx, event.CreateEvent{Object: old}, waiting)

		events.Update(ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: fresh}, waiting)

		Expect(w.claims.Index.Reserve(binder.ClaimRequest{Claim: Claim(ClaimNamed("other"), ClaimUID("three"))})).NotTo(BeNil())
	})

	DescribeTable("a claim is woken by more than its own reconciler's words",
		func(ctx SpecContext, change func(*corev1.PersistentVolumeClaim), woken int) {
			before := Claim()
			before.ResourceVersion = "1"
			bindable.Set(before, corev1.PersistentVolumeClaimCondition{Status: corev1.ConditionFalse, Reason: "NoMatchingVolume"})
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			change(after)

			w.claims.ClaimEvents().Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, waiting)

			Expect(waiting.Len()).To(Equal(woken))
		},
		Entry("not by another reason to wait", func(claim *corev1.PersistentVolumeClaim) {
			bindable.Set(claim, corev1.PersistentVolumeClaimCondition{Status: corev1.ConditionFalse, Reason: "ProvisioningFailed"})
		}, 0),
		Entry("by its spec", Asking("2Gi"), 1),
		Entry("by its annotations", func(claim *corev1.PersistentVolumeClaim) { claim.Annotations = map[string]string{"a": "b"} }, 1),
		Entry("by its phase", func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimLost }, 1),
		Entry("by a condition that was removed", func(claim *corev1.PersistentVolumeClaim) { claim.Status.Conditions = nil }, 1),
		Entry("by a resync", func(claim *corev1.PersistentVolumeClaim) { claim.ResourceVersion = "1" }, 1),
	)

	DescribeTable("a claim whose volume is begun isn't woken by that alone",
		func(ctx SpecContext, change func(*corev1.PersistentVolumeClaim), woken int) {
			before := Claim(InClass("fast"))
			before.ResourceVersion = "1"
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			after.Finalizers = []string{uses.ClaimProtection, stowagev1alpha1.ProvisioningFinalizer}
			after.Annotations = map[string]string{
				stowagev1alpha1.ProvisioningAnnotation: "{}", volume.AnnStorageProvisioner: "p", volume.AnnBetaStorageProvisioner: "p",
			}
			change(after)

			w.claims.ClaimEvents().Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, waiting)
			Expect(waiting.Len()).To(Equal(woken))

			By("which taking it back does, too")
			w.claims.ClaimEvents().Update(ctx, event.UpdateEvent{ObjectOld: after, ObjectNew: before}, waiting)
			Expect(waiting.Len()).To(Equal(1))
		},
		Entry("of all that is written then", func(*corev1.PersistentVolumeClaim) {}, 0),
		Entry("but by its deletion", func(claim *corev1.PersistentVolumeClaim) { claim.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, 1),
		Entry("but by a node that is chosen", func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations[step.AnnSelectedNode] = "n"
		}, 1),
		Entry("but by a volume", AskingFor("v"), 1),
	)

	It("a NodeVolume wakes its claim once its node's agent said something of it", func(ctx SpecContext) {
		made := &stowagev1alpha1.NodeVolume{Spec: stowagev1alpha1.NodeVolumeSpec{ClaimRef: stowagev1alpha1.ClaimReference{Namespace: "default", Name: "data"}}}
		Expect(w.claims.ClaimOfNodeVolume(ctx, made)).To(BeEmpty())
		made.Status.Conditions = []metav1.Condition{{Type: stowagev1alpha1.ProvisionedCondition}}
		Expect(w.claims.ClaimOfNodeVolume(ctx, made)).To(HaveLen(1))
		made.Status.Conditions, made.DeletionTimestamp = nil, &metav1.Time{Time: time.Now()}
		Expect(w.claims.ClaimOfNodeVolume(ctx, made)).To(HaveLen(1))
	})

	const atTheStart, later, early = handler.LowPriority, 0, handler.LowPriority / 2
	DescribeTable("a claim that is there at the start",
		func(ctx SpecContext, scope reconciler.Scope, reason string, change func(*corev1.PersistentVolumeClaim), want int) {
			w.scope = scope
			w.restart()
			ordered := priorityqueue.New[reconcile.Request]("claims")
			DeferCleanup(ordered.ShutDown)
			claim := Claim()
			claim.Annotations = map[string]string{}
			if reason != "" {
				bindable.Set(claim, corev1.PersistentVolumeClaimCondition{Status: corev1.ConditionFalse, Reason: reason})
			}
			change(claim)

			w.claims.ClaimEvents().Create(ctx, event.CreateEvent{Object: claim, IsInInitialList: true}, ordered)

			_, priority, _ := ordered.GetWithPriority()
			Expect(priority).To(Equal(want))
		},
		Entry("comes early if it is new", reconciler.ClusterScope, "", unchanged, early),
		Entry("waits its turn if it waited before", reconciler.ClusterScope, bindable.ReasonNoMatchingVolume, unchanged, atTheStart),
		Entry("waits its turn if it is bound", reconciler.ClusterScope, bindable.ReasonBound, inPhase(corev1.ClaimBound), atTheStart),
		Entry("waits its turn if its volume is lost", reconciler.ClusterScope, "", inPhase(corev1.ClaimLost), atTheStart),
		Entry("comes early if its binding wasn't finished", reconciler.ClusterScope, bindable.ReasonBound, inPhase(corev1.ClaimPending), early),
		Entry("waits its turn until it has a consumer", reconciler.ClusterScope, bindable.ReasonWaitForFirstConsumer, unchanged, atTheStart),
		Entry("comes early once its consumer has a node", reconciler.ClusterScope, bindable.ReasonWaitForFirstConsumer, func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations[step.AnnSelectedNode] = "n"
		}, early),
		Entry("comes early if its volume is being made", reconciler.ClusterScope, bindable.ReasonProvisioning, func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations[stowagev1alpha1.ProvisioningAnnotation] = "{}"
		}, early),
		Entry("waits its turn in scope=classes, where no condition says what it waits for", reconciler.ClassesScope, "", unchanged, atTheStart),
	)

	It("a claim that is created later comes before all of them", func(ctx SpecContext) {
		ordered := priorityqueue.New[reconcile.Request]("claims")
		DeferCleanup(ordered.ShutDown)
		w.claims.ClaimEvents().Create(ctx, event.CreateEvent{Object: Claim()}, ordered)
		_, priority, _ := ordered.GetWithPriority()
		Expect(priority).To(Equal(later))
	})

	DescribeTable("a volume wakes a claim that names it, and that the index doesn't have",
		func(ctx SpecContext, version string, woken int) {
			w.create(Claim(AskingFor("v")))
			before := Volume("v")
			before.ResourceVersion = "1"
			after := before.DeepCopy()
			after.ResourceVersion = version

			w.claims.VolumeEvents().Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, waiting)

			Expect(waiting.Len()).To(Equal(woken))
		},
		Entry("by a change", "2", 1),
		Entry("but not in a resync, in which the claim comes, too", "1", 0),
	)

	It("a volume that is there at the start wakes the claim that names it, though the claim was seen before", func(ctx SpecContext) {
		w.claims.ClaimEvents().Create(ctx, event.CreateEvent{Object: Claim(AskingFor("v")), IsInInitialList: true}, waiting)
		claim, _ := waiting.Get()
		waiting.Done(claim)

		w.claims.VolumeEvents().Create(ctx, event.CreateEvent{Object: Volume("another"), IsInInitialList: true}, waiting)
		Expect(waiting.Len()).To(BeZero())
		w.claims.VolumeEvents().Create(ctx, event.CreateEvent{Object: Volume("v"), IsInInitialList: true}, waiting)
		Expect(waiting.Len()).To(Equal(1))
	})

	It("a claim that begins to wait while others are about to look again looks again too", func(ctx SpecContext) {
		w.claims.Index.Reserve(binder.ClaimRequest{Claim: Claim(ClaimNamed("early"), ClaimUID("1"), Asking("9Gi"))})
		w.claims.VolumeEvents().Create(ctx, event.CreateEvent{Object: Volume("v")}, waiting)
		late := Claim(ClaimNamed("late"), Asking("9Gi"))
		w.create(late)

		result, err := w.claims.Reconcile(ctx, wake.Request(late))

		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<", time.Minute)))
	})
})

var _ = Describe("A claim of hand-made volumes that wait for their first consumer", func() {
	It("says that it waits for a consumer", func() {
		w := newWorldIn(newMemory())
		class := Class("by-hand", provisioning.NoProvisioner, nil)
		class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
		claim := Claim(InClass("by-hand"))
		w.create(class, Volume("a", OfClass("by-hand")), claim)

		w.settle()

		Expect(w.condition(claim).Reason).To(Equal("WaitForFirstConsumer"))
	})
})

var _ = Describe("In scope=classes a claim whose class is gone", func() {
	It("is left to its binder, without a word", func() {
		w := newWorldIn(newMemory())
		w.scope = reconciler.ClassesScope
		w.restart()
		w.create(Claim(InClass("gone"), requestedFrom(stowagev1alpha1.LocalDriver)))
		for i := range 3 {
			w.create(Volume(fmt.Sprint("v", i), OfClass("gone")))
			_ = w.round()
		}

		Expect(w.newEvents()).To(BeEmpty())
	})
})

var _ = Describe("A claim that is deleted while the outcome of its provisioning is unknown", func() {
	It("stays until its backend answers: that it is away says nothing about the call before", func(ctx SpecContext) {
		w := newWorldIn(newMemory())
		storage := &unsureStorage{Backend: w.storage}
		w.serve(byName{"disks": storage})
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"))
		w.settle()
		w.create(claim)
		_ = w.round()

		w.delete(claim)
		_ = w.round()
		Expect(w.gone(claim)).To(BeFalse())
		storage.takeEffect(ctx)
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})
})

// unsureStorage doesn't answer the first call, which takes effect later; then it is
// away for one call.
type unsureStorage struct {
	*fake.Backend
	calls   int
	pending backend.Request
}

func (s *unsureStorage) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	s.calls++
	switch s.calls {
	case 1:
		s.pending = request
		return nil, errors.New("connection lost")
	case 2:
		return nil, backend.Unavailable.Errorf("try later")
	}
	return s.Backend.Provision(ctx, request)
}

func (s *unsureStorage) takeEffect(ctx context.Context) { _, _ = s.Backend.Provision(ctx, s.pending) }

var _ = Describe("A claim whose backend is at work", func() {
	It("says so only once that lasts", func() {
		w := newWorldIn(newMemory())
		w.patience = persistentvolumeclaim.UntilReported
		w.restart()
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"))
		w.settle()
		w.storage.FailNext(slices.Repeat([]error{backend.InProgress.Errorf("the agent is at work")}, 3*maxRounds)...)
		w.create(claim)

		w.settle()
		Expect(w.read(claim).Status.Conditions).To(BeEmpty())
		w.clock.SetTime(w.clock.Now().Add(persistentvolumeclaim.UntilReported))
		_ = w.round()

		Expect(w.condition(claim).Message).To(Equal("the agent is at work"))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("Normal Provisioning the agent is at work")))
	})

	It("says so only once that lasts, however long it waited for a node before", func() {
		w := newWorldIn(newMemory())
		w.patience = persistentvolumeclaim.UntilReported
		w.restart()
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks", waitingForConsumer), Node("node-1"), claim)
		w.settle()
		w.clock.SetTime(w.clock.Now().Add(persistentvolumeclaim.UntilReported))
		w.storage.FailNext(slices.Repeat([]error{backend.InProgress.Errorf("the agent is at work")}, 3*maxRounds)...)
		place(w, claim, "node-1")

		w.settle()

		Expect(w.condition(claim).Reason).To(Equal("WaitForFirstConsumer"))
	})
})

func unchanged(*corev1.PersistentVolumeClaim) {}

func inPhase(phase corev1.PersistentVolumeClaimPhase) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = phase }
}
