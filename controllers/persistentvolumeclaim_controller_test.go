package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim and static volumes", func() {
	It("is bound to the smallest volume that fits", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(Asking("3Gi"))
		w.create(Volume("big", Holding("10Gi")), Volume("right", Holding("5Gi")), Volume("small"), claim)

		w.settle()

		expectBound(w, claim, Volume("right"))
		Expect(claim.Status.Capacity.Storage().String()).To(Equal("5Gi"))
	})

	It("is bound in exactly four writes beyond the volume's Available", func() {
		w := newWorld(reconciler.ClusterScope)
		w.create(Volume("v"))
		w.settle()
		w.create(Claim())

		before := w.written
		w.settle()

		Expect(w.written - before).To(Equal(4))
	})

	It("is bound when its volume appears later", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim()
		w.create(claim)
		w.settle()
		Expect(claim.Status.Phase).To(Equal(corev1.ClaimPending))

		w.create(Volume("late"))
		w.settle()

		expectBound(w, claim, Volume("late"))
	})

	It("reports why it waits, in its condition and in one event", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(Asking("10Gi"))
		w.create(Volume("a", Holding("5Gi")), Volume("b"), Volume("c", ReservedTo("other")), claim)

		w.settle()

		Expect(w.condition(claim)).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
			"Status": Equal(corev1.ConditionFalse),
			"Reason": Equal("NoMatchingVolume"),
			"Message": HavePrefix("3 volumes without a class: 2 too small (largest 5Gi: a, need 10Gi), " +
				"1 reserved for default/other; create a volume that fits"),
		}))
		Expect(w.newEvents()).To(ConsistOf(ContainSubstring("FailedBinding 3 volumes")))
	})

	It("gets the volume it names, and waits for one that isn't there", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(AskingFor("mine"))
		w.create(Volume("smaller"), claim)
		w.settle()
		Expect(w.condition(claim).Reason).To(Equal("VolumeNotFound"))

		w.create(Volume("mine", Holding("5Gi")))
		w.settle()

		expectBound(w, claim, Volume("mine"))
	})

	It("does not get a volume that another claim names", func() {
		w := newWorld(reconciler.ClusterScope)
		unnamed, named := Claim(ClaimNamed("a-comes-first")), Claim(ClaimNamed("b-names-it"), AskingFor("v"))
		w.create(Volume("v"), unnamed, named)

		w.settle()

		expectBound(w, named, Volume("v"))
		Expect(w.condition(unnamed).Message).To(ContainSubstring("1 reserved for default/b-names-it"))
	})

	It("reports that the volume it names belongs to another claim", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(AskingFor("taken"))
		w.create(Volume("taken", ReservedTo("other")), claim)

		w.settle()

		Expect(w.condition(claim).Reason).To(Equal("VolumeReserved"))
	})

	It("is Lost when its volume is gone, and says so once", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v")
		w.create(claim, pv)
		w.settle()
		w.newEvents()

		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
		w.delete(pv)
		w.settle()

		w.get(claim)
		Expect(claim.Status.Phase).To(Equal(corev1.ClaimLost))
		Expect(w.newEvents()).To(ConsistOf(ContainSubstring("ClaimLost")))
	})

	It("never shares its volume with another claim", func() {
		w := newWorld(reconciler.ClusterScope)
		first, second := Claim(ClaimNamed("first")), Claim(ClaimNamed("second"))
		w.create(Volume("only"), first, second)

		w.settle()

		w.get(first)
		w.get(second)
		Expect([]string{first.Spec.VolumeName, second.Spec.VolumeName}).To(ConsistOf("only", ""))
	})

	It("is left to a foreign provisioner, by annotation", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("foreign"))
		w.create(Class("foreign", "example.com/disks", nil), claim)

		w.settle()

		Expect(w.condition(claim).Reason).To(Equal("ExternalProvisioning"))
		Expect(claim.Annotations).To(HaveKeyWithValue(volume.AnnStorageProvisioner, "example.com/disks"))
	})
})

var _ = Describe("The protection of a claim", func() {
	It("holds a deleted claim while a pod with a node uses it", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pod := Claim(), Pod("user", "node-1", "data")
		w.create(Volume("v"), claim, pod)
		w.settle()

		w.delete(claim)
		w.settle()
		Expect(w.gone(claim)).To(BeFalse())

		w.delete(pod)
		w.settle()
		Expect(w.gone(claim)).To(BeTrue())
	})

	It("lets a claim go whose pod never got a node", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim()
		w.create(claim, Pod("unplaced", "", "data"))

		w.delete(claim)
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
	})
})

var _ = Describe("Binding that is interrupted", func() {
	const writes = 4
	for _, kind := range []fault{lost, unanswered, contended} {
		for number := range writes {
			It("ends the same when write "+string(rune('1'+number))+" is "+string(kind)+", and after a restart", func() {
				w := newWorld(reconciler.ClusterScope)
				claim := Claim()
				w.create(Volume("v"), Volume("w", Holding("2Gi")))
				w.settle()
				w.create(claim)
				w.faults = map[int]fault{w.written + number: kind}

				_ = w.round()
				w.restart()
				w.settle()

				expectBound(w, claim, Volume("v"))
				other := Volume("w")
				w.get(other)
				Expect(other.Status.Phase).To(Equal(corev1.VolumeAvailable))
			})
		}
	}
})

// expectBound expects claim and volume to be bound to each other, as Kubernetes
// and every other tool reads it.
func expectBound(w *world, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	GinkgoHelper()
	w.get(claim)
	w.get(pv)
	Expect(claim.Spec.VolumeName).To(Equal(pv.Name))
	Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
	Expect(claim.Annotations).To(HaveKey(volume.AnnBindCompleted))
	Expect(pv.Spec.ClaimRef).NotTo(BeNil())
	Expect(pv.Spec.ClaimRef.UID).To(Equal(claim.UID))
	Expect(pv.Status.Phase).To(Equal(corev1.VolumeBound))
	Expect(claim.Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
	Expect(w.condition(claim).Status).To(Equal(corev1.ConditionTrue))
}
