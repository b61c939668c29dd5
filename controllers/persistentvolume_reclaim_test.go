package controllers

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A volume that Stowage made", func() {
	It("goes with its claim, and so does its data", func() {
		w, claim, pv := madeVolumeOf()

		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("goes after one live read of its claim, and none of itself", func() {
		w, claim, pv := madeVolumeOf()
		reads := &claimReads{Reader: w.reads}
		w.views.volumes.live.Reader = reads
		w.delete(claim)

		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(reads.kinds).To(ConsistOf("*v1.PersistentVolumeClaim"))
	})

	for what, test := range map[string]struct {
		before, after func(*world, *corev1.PersistentVolume)
	}{
		"is followed by Retain, which the cache doesn't show": {after: func(w *world, pv *corev1.PersistentVolume) {
			deleted := pv.DeepCopy()
			w.get(deleted)
			w.views.volumes.Client = stale{w.views.volumes.Client, []client.Object{deleted}}
			update(w, deleted.DeepCopy(), retain)
		}},
		"is followed by the removal of its finalizer": {after: func(w *world, pv *corev1.PersistentVolume) {
			update(w, pv.DeepCopy(), func(pv *corev1.PersistentVolume) {
				controllerutil.RemoveFinalizer(pv, stowagev1alpha1.ReclaimFinalizer)
			})
		}},
		"is late in the cache": {after: func(w *world, released *corev1.PersistentVolume) {
			w.views.volumes.Client = stale{w.views.volumes.Client, []client.Object{released}}
		}},
		"leaves another's finalizer": {before: func(w *world, pv *corev1.PersistentVolume) {
			update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = append(pv.Finalizers, "example.com/keeps") })
		}},
	} {
		It("keeps its storage in that pass, where its deletion "+what, func() {
			w, pv := releasedIn(time.Hour)
			w.clock.SetTime(time.Now().Add(2 * time.Hour))
			if test.before != nil {
				test.before(w, pv)
			}
			w.views.volumes.Client = &deleting{Client: w, then: func() {
				if test.after != nil {
					test.after(w, pv)
				}
			}}

			_, err := w.volumes.Reconcile(GinkgoT().Context(), wake.Request(pv))
			Expect(err).NotTo(HaveOccurred())

			now := pv.DeepCopy()
			w.get(now)
			Expect(now.DeletionTimestamp).NotTo(BeNil())
			Expect(w.storage.Len()).To(Equal(1))
			w.views.volumes.Client = w
			update(w, now, retain)
			w.settle()
			Expect(w.storage.Len()).To(Equal(1))
		})
	}

	It("keeps its data when the policy is set to Retain right after its deletion", func() {
		w, pv := releasedIn(time.Hour)
		w.clock.SetTime(time.Now().Add(2 * time.Hour))
		w.views.volumes.Client = &deleting{Client: w, then: func() { update(w, pv.DeepCopy(), retain) }}

		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("stays when its policy was set to Retain, and the cache doesn't show that yet", func() {
		w, claim, pv := madeVolumeOf(retainingFor(time.Hour))
		w.delete(claim)
		w.settle()
		expectPhase(w, pv, corev1.VolumeReleased)
		released := pv.DeepCopy()
		update(w, pv, retain)
		w.clock.SetTime(time.Now().Add(2 * time.Hour))
		w.views.volumes.Client = stale{w, []client.Object{released}}

		_, _ = w.volumes.Reconcile(GinkgoT().Context(), wake.Request(pv))

		w.get(pv)
		Expect(pv.DeletionTimestamp).To(BeNil())
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("records once why its storage is still there, and that it is gone", func() {
		w, claim, _ := madeVolumeOf()
		w.storage.FailNext(slices.Concat(
			slices.Repeat([]error{backend.Unavailable.Errorf("the storage is away")}, 3),
			slices.Repeat([]error{backend.InProgress.Errorf("waiting for the agent")}, 3))...)
		w.delete(claim)
		w.newEvents()

		for range 10 {
			_ = w.round()
		}

		Expect(w.newEvents()).To(Equal([]string{
			"Warning VolumeFailedDelete the storage is away",
			"Normal VolumeDelete waiting for the agent",
			"Normal VolumeDeleted StorageBackend disks holds no storage of volume " + provisioned.VolumeID(claim) + " any more",
		}))
	})

	It("isn't called removed where only its record is gone", func() {
		w, claim, pv := madeVolumeOf()
		w.storage.LoseRecord(pv.Name, "node-a")
		w.delete(claim)
		w.newEvents()

		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(eventsWith(w.newEvents(), "Volume")).To(ContainElement(And(
			HavePrefix("Warning VolumeFailedDelete"), ContainSubstring("its data stays in the memory of node node-a"))))
	})

	It("keeps its data when its policy was set to Retain, also when it is deleted itself", func() {
		w, claim, pv := madeVolumeOf()
		update(w, pv, retain)
		w.delete(claim)
		w.settle()
		expectPhase(w, pv, corev1.VolumeReleased)

		w.delete(pv)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("keeps its data when the policy is set to Retain after the point of no return", func() {
		w, claim, pv := madeVolumeOf()
		w.storage.FailNext(slices.Repeat([]error{backend.Unavailable.Errorf("the storage is away")}, maxRounds)...)
		w.delete(claim)
		w.settle()
		w.get(pv)
		Expect(pv.DeletionTimestamp).NotTo(BeNil())

		update(w, pv, retain)
		w.storage.FailNothing()
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("keeps its data for the undelete window, also when it is deleted itself", func() {
		w, claim, pv := madeVolumeOf(retainingFor(time.Hour))
		w.delete(claim)
		w.settle()
		expectPhase(w, pv, corev1.VolumeReleased)
		w.delete(pv)
		w.settle()
		Expect(w.storage.Len()).To(Equal(1))

		w.clock.SetTime(time.Now().Add(2 * time.Hour))
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("goes back, inside the undelete window, to the claim that a person names", func() {
		w, claim, pv := madeVolumeOf(retainingFor(time.Hour))
		w.delete(claim)
		w.settle()

		update(w, pv, func(pv *corev1.PersistentVolume) {
			retain(pv)
			reserve("restored")(pv)
		})
		stranger, restored := Claim(ClaimNamed("stranger"), InClass("disks")), Claim(ClaimNamed("restored"), AskingFor(pv.Name))
		w.create(stranger)
		w.settle()
		w.create(restored)
		w.settle()

		expectBound(w, restored, pv)
		expectBound(w, stranger, Volume(provisioned.VolumeID(stranger)))
		Expect(w.storage.Has(pv.Name)).To(BeTrue())
	})

	It("keeps its data while its claim lives, though the volume was deleted first", func() {
		w, claim, pv := madeVolumeOf()
		w.delete(pv)
		w.settle()
		Expect(w.storage.Len()).To(Equal(1))

		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("keeps its data while another volume object stands for it", func() {
		w, claim, pv := madeVolumeOf()
		twin := Volume("twin")
		twin.Spec.PersistentVolumeSource = pv.Spec.PersistentVolumeSource
		w.create(twin)

		w.delete(claim)
		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
		Expect(w.storage.Len()).To(Equal(1))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("volume twin stands for the same storage")))
	})

	It("keeps its data while another volume object stands for it that the cache has not seen", func() {
		w, claim, pv := madeVolumeOf()
		twin := Volume("twin")
		twin.Spec.PersistentVolumeSource = pv.Spec.PersistentVolumeSource
		w.create(twin)
		w.views.volumes.Client = withoutVolume{w, twin.Name}

		w.delete(claim)
		w.settle()

		Expect(w.storage.Len()).To(Equal(1))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("volume twin stands for the same storage")))
	})

	It("is not deleted after a person reserved it for another claim, though the cache is behind", func() {
		w, claim, pv := madeVolumeOf(retainingFor(time.Hour))
		w.delete(claim)
		w.settle()
		expectPhase(w, pv, corev1.VolumeReleased)
		released := pv.DeepCopy()

		update(w, pv, reserve("restored"))
		w.clock.SetTime(time.Now().Add(2 * time.Hour))
		w.views.volumes.Client = stale{w, []client.Object{released}}
		_ = w.round()
		w.views.volumes.Client = w
		w.settle()

		expectPhase(w, pv, corev1.VolumeAvailable)
		Expect(pv.DeletionTimestamp).To(BeNil())
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("is not deleted in scope=classes while it is reserved, though it is Released still", func() {
		w := newWorld(reconciler.ClassesScope)
		claim := Claim(InClass("disks"), requestedFrom(stowagev1alpha1.LocalDriver))
		w.create(LocalBackend("disks", retaining), claim)
		w.settle()
		pv := Volume(provisioned.VolumeID(claim))
		w.delete(claim)
		setPhase(w, pv, corev1.VolumeReleased)

		update(w, pv, func(pv *corev1.PersistentVolume) {
			reserve("restored")(pv)
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		})
		w.settle()

		w.get(pv)
		Expect(pv.DeletionTimestamp).To(BeNil())
		Expect(w.storage.Len()).To(Equal(1))
	})

	DescribeTable("goes with its data when a person deletes it after its claim was taken off it",
		func(unclaim func(*corev1.PersistentVolume)) {
			w, claim, pv := madeVolumeOf()
			update(w, pv, retain)
			w.delete(claim)
			w.settle()
			update(w, pv, func(pv *corev1.PersistentVolume) {
				unclaim(pv)
				pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			})
			w.settle()
			expectPhase(w, pv, corev1.VolumeAvailable)

			w.delete(pv)
			w.settle()

			Expect(w.gone(pv)).To(BeTrue())
			Expect(w.storage.Len()).To(BeZero())
		},
		Entry("for any claim", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }),
		Entry("for a claim that a person named", reserve("restored")),
	)

	It("keeps its data for the undelete window after a person deleted it while it was Available", func() {
		w, claim, pv := madeVolumeOf(retainingFor(time.Hour))
		w.delete(claim)
		w.settle()
		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
		w.settle()
		w.get(pv)
		pv.Status.LastPhaseTransitionTime = &metav1.Time{Time: time.Now().Add(-2 * time.Hour)}
		Expect(w.direct.Status().Update(GinkgoT().Context(), pv)).To(Succeed())

		w.delete(pv)
		w.settle()
		Expect(w.storage.Len()).To(Equal(1))

		w.clock.SetTime(time.Now().Add(2 * time.Hour))
		w.settle()
		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("keeps its data while a claim is bound to it that its claimRef no longer names", func() {
		w, claim, pv := madeVolumeOf()
		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
		w.delete(pv)
		for range 3 {
			_, _ = w.volumes.Reconcile(GinkgoT().Context(), wake.Request(pv))
		}
		Expect(w.storage.Len()).To(Equal(1))

		w.settle()

		expectBound(w, claim, pv)
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("is deleted with its data although its finalizer was removed", func() {
		w, claim, pv := madeVolumeOf()
		update(w, pv, func(pv *corev1.PersistentVolume) {
			controllerutil.RemoveFinalizer(pv, stowagev1alpha1.ReclaimFinalizer)
		})
		w.settle()

		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("is bound still when it is deleted and the cache has not seen its claim's binding", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := unboundAfter(w, 3)
		unbound := claim.DeepCopy()
		w.settle()
		expectBound(w, claim, pv)

		w.delete(pv)
		w.views.volumes.Client = stale{w, []client.Object{unbound}}
		w.settle()

		expectBound(w, claim, pv)
		Expect(w.storage.Len()).To(Equal(1))
	})

	for number, name := range []string{"phase", "claim"} {
		write := 2 + number
		It("makes way for another when it is deleted before its "+name+" was written", func() {
			w := newWorld(reconciler.ClusterScope)
			claim, pv := unboundAfter(w, write)

			w.delete(pv)
			w.settle()

			expectBound(w, claim, Volume(provisioned.VolumeID(w.read(claim))))
			Expect(claim.Spec.VolumeName).To(Equal(pv.Name + "-2"))
			Expect(w.gone(pv)).To(BeTrue())
			Expect(w.storage.Len()).To(Equal(1))
		})

		It("is not bound by a bind that began before it was deleted, and whose write of the "+name+" comes late", func() {
			w := newWorld(reconciler.ClusterScope)
			claim, pv := unboundAfter(w, write)
			late := &step.Scope{Claim: claim.DeepCopy(), Volume: pv.DeepCopy()}

			w.delete(pv)
			_, err := w.volumes.Reconcile(GinkgoT().Context(), wake.Request(pv))
			Expect(err).NotTo(HaveOccurred())
			_, err = w.binder().Bind(GinkgoT().Context(), late)
			Expect(err).To(HaveOccurred())
			w.settle()

			expectBound(w, claim, Volume(pv.Name))
			Expect(w.storage.Len()).To(Equal(1))
		})
	}

	It("can be deleted after its class is gone", func() {
		w, claim, pv := madeVolumeOf()
		update(w, LocalBackend("disks"), func(object *stowagev1alpha1.StorageBackend) { object.Spec.StorageClass = nil })

		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})
})

var _ = Describe("Reclaim that is interrupted", func() {
	const writes = 4
	for _, kind := range []fault{lost, unanswered} {
		for number := range writes {
			It("removes data and volume when write "+string(rune('1'+number))+" is "+string(kind), func() {
				w, claim, pv := madeVolumeOf()
				w.delete(claim)
				w.faults = map[int]fault{w.written + number: kind}

				_ = w.round()
				w.restart()
				w.settle()

				Expect(w.gone(claim)).To(BeTrue())
				Expect(w.gone(pv)).To(BeTrue())
				Expect(w.storage.Len()).To(BeZero())
			})
		}
	}
})

// madeVolumeOf is a cluster with a claim and the volume that was made for it.
func madeVolumeOf(options ...func(*stowagev1alpha1.StorageBackend)) (*world, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	GinkgoHelper()
	w := newWorld(reconciler.ClusterScope)
	claim := Claim(InClass("disks"))
	w.create(LocalBackend("disks", options...), claim)
	w.settle()
	pv := Volume(provisioned.VolumeID(claim))
	expectBound(w, claim, pv)
	return w, claim, pv
}

func retain(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// unboundAfter is a claim and the volume made for it, whose binding ended with the
// loss of one of its writes.
func unboundAfter(w *world, write int) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	GinkgoHelper()
	claim := Claim(InClass("disks"))
	w.create(LocalBackend("disks"))
	w.settle()
	w.create(claim)
	w.feedIndex()
	w.faults = map[int]fault{w.written + write: lost}
	_, _ = w.claims.Reconcile(GinkgoT().Context(), wake.Request(claim))
	pv := Volume(provisioned.VolumeID(claim))
	w.get(claim)
	w.get(pv)
	Expect(claim.Spec.VolumeName).To(BeEmpty())
	return claim, pv
}

// retainingFor sets a backend's undelete window.
func retainingFor(window time.Duration) func(*stowagev1alpha1.StorageBackend) {
	return func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Deletion.RetainFor = metav1.Duration{Duration: window}
	}
}

// retaining sets the policy of a backend's class to Retain.
func retaining(object *stowagev1alpha1.StorageBackend) {
	object.Spec.StorageClass.ReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// reserve reserves a volume for a claim by name, as a user does.
func reserve(claim string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: Namespace, Name: claim}
	}
}

// setPhase writes a volume's phase, as kube-controller-manager does.
func setPhase(w *world, pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) {
	GinkgoHelper()
	w.get(pv)
	pv.Status.Phase = phase
	Expect(w.direct.Status().Update(GinkgoT().Context(), pv)).To(Succeed())
}

// releasedIn is a cluster with a volume whose claim is gone, inside its undelete window.
func releasedIn(window time.Duration) (*world, *corev1.PersistentVolume) {
	GinkgoHelper()
	w, claim, pv := madeVolumeOf(retainingFor(window))
	w.delete(claim)
	w.settle()
	expectPhase(w, pv, corev1.VolumeReleased)
	return w, pv
}

// deleting is a client after whose first deletion something happens.
type deleting struct {
	client.Client
	then func()
}

func (d *deleting) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	err := d.Client.Delete(ctx, object, options...)
	if d.then != nil {
		then := d.then
		d.then = nil
		then()
	}
	return err
}
