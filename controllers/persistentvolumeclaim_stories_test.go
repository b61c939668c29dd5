package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim in a cluster of many kinds of volumes", func() {
	It("is bound to the smallest that fits, whatever else the volumes can do", func() {
		w := newWorldIn(newMemory())
		claim := Claim(Asking("5Gi"))
		w.create(Volume("huge", Holding("1Ti")), claim,
			Volume("right", Holding("10Gi"), WithModes(corev1.ReadWriteOnce, corev1.ReadOnlyMany)))

		w.settle()

		expectBound(w, claim, Volume("right"))
	})

	It("is bound to another volume when the one reserved for it is too small", func() {
		w := newWorldIn(newMemory())
		claim := Claim(Asking("5Gi"))
		w.create(Volume("reserved", ReservedTo("data")), Volume("other", Holding("5Gi")), claim)

		w.settle()

		expectBound(w, claim, Volume("other"))
		reserved := Volume("reserved")
		expectPhase(w, reserved, corev1.VolumeAvailable)
		Expect(reserved.Spec.ClaimRef).NotTo(BeNil())
	})

	It("reports that the volume reserved for it is too small", func() {
		w := newWorldIn(newMemory())
		claim := Claim(Asking("5Gi"))
		w.create(Volume("reserved", ReservedTo("data")), claim)

		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("too small"))
	})

	It("that requests a block device reports that there are file systems only", func() {
		w := newWorldIn(newMemory())
		claim := Claim(AskingBlock())
		w.create(Volume("v"), claim)

		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("1 not of volumeMode Block"))
	})
})

var _ = Describe("A claim made again under the same name", func() {
	It("is not called Bound by the late last write of the one before", func() {
		w := newWorld(reconciler.ClusterScope)
		first, second := Claim(), Claim()
		w.create(Volume("v"))
		w.settle()
		w.create(first)
		w.feedIndex()
		w.faults = map[int]fault{w.written + 3: lost}
		_, _ = w.claims.Reconcile(GinkgoT().Context(), wake.Request(first))
		w.get(first)
		late, pv := first.DeepCopy(), Volume("v")
		w.get(pv)

		update(w, first, func(claim *corev1.PersistentVolumeClaim) { claim.Finalizers = nil })
		w.delete(first)
		w.create(second)
		_ = w.binder().SetClaimBound(GinkgoT().Context(), late, pv)
		w.settle()

		w.get(second)
		Expect(second.Spec.VolumeName).To(BeEmpty())
		Expect(second.Status.Phase).To(Equal(corev1.ClaimPending))
	})
})

var _ = Describe("A claim whose volume the cache has not seen", func() {
	It("is not Lost", func() {
		w := newWorldIn(newMemory())
		claim, pv := Claim(), Volume("v")
		w.create(pv, claim)
		w.settle()

		w.views.claims.Client = withoutVolume{w, pv.Name}
		_, err := w.claims.Reconcile(GinkgoT().Context(), wake.Request(claim))

		Expect(err).NotTo(HaveOccurred())
		expectBound(w, claim, pv)
		Expect(w.newEvents()).NotTo(ContainElement(ContainSubstring("ClaimLost")))
	})
})
