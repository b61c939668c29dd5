package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim that leaves Bound", func() {
	ended := func(w *world, claim *corev1.PersistentVolumeClaim, phase corev1.PersistentVolumeClaimPhase) {
		GinkgoHelper()
		w.get(claim)
		Expect(claim.Status.Phase).To(Equal(phase))
		Expect(claim.Status.Capacity).To(BeEmpty())
		Expect(claim.Status.AccessModes).To(BeEmpty())
		Expect(claim.Status.CurrentVolumeAttributesClassName).To(BeNil())
	}

	It("has nothing of its volume any more when it is Lost, and all when that comes back", func() {
		w, claim, pv := newWorld(reconciler.ClusterScope), Claim(ofAttributes("gold")), Volume("v", attributed)
		w.create(pv, claim)
		w.settle()

		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
		w.delete(pv)
		w.settle()
		ended(w, claim, corev1.ClaimLost)

		w.create(Volume("v", attributed))
		w.settle()
		expectBound(w, claim, Volume("v"))
		Expect(claim.Status.Capacity.Storage().String()).To(Equal("1Gi"))
		Expect(claim.Status.CurrentVolumeAttributesClassName).To(HaveValue(Equal("gold")))
	})

	It("has nothing of a volume when it is Pending", func() {
		w, claim := newWorld(reconciler.ClusterScope), Claim(AskingFor("missing"))
		w.create(claim)
		claim.Status.Phase, claim.Status.AccessModes = corev1.ClaimBound, claim.Spec.AccessModes
		claim.Status.Capacity, claim.Status.CurrentVolumeAttributesClassName = claim.Spec.Resources.Requests, new("gold")
		Expect(w.direct.Status().Update(GinkgoT().Context(), claim)).To(Succeed())

		w.settle()

		ended(w, claim, corev1.ClaimPending)
	})
})
