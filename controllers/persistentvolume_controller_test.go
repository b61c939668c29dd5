package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A static volume", func() {
	It("is Available while no claim has it", func() {
		w := newWorld(reconciler.ClusterScope)
		pv := Volume("v")
		w.create(pv)
		w.settle()
		expectPhase(w, pv, corev1.VolumeAvailable)
	})

	It("is Released, with its claimRef, when its claim is deleted", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v")
		w.create(claim, pv)
		w.settle()

		w.delete(claim)
		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
		Expect(pv.Spec.ClaimRef.UID).To(Equal(claim.UID))
	})

	It("never goes to a later claim of the same name", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v")
		w.create(claim, pv)
		w.settle()
		w.delete(claim)
		w.settle()

		second := Claim()
		w.create(second)
		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
		w.get(second)
		Expect(second.Spec.VolumeName).To(BeEmpty())
	})

	It("is not Released because the cache has not seen its claim", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v")
		w.create(claim, pv)
		w.settle()

		w.views.volumes.Client = withoutClaims{w}
		w.settle()

		expectPhase(w, pv, corev1.VolumeBound)
	})

	It("is protected from deletion while a claim is bound to it", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v")
		w.create(claim, pv)
		w.settle()

		w.delete(pv)
		w.settle()
		expectPhase(w, pv, corev1.VolumeBound)

		w.delete(claim)
		w.settle()
		Expect(w.gone(pv)).To(BeTrue())
	})

	It("goes without an error when it is deleted together with its claim", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v", Reclaimed(corev1.PersistentVolumeReclaimDelete))
		w.create(claim, pv)
		w.settle()

		w.delete(pv)
		w.delete(claim)

		Expect(w.round()).To(Succeed())
		Expect(w.round()).To(Succeed())
		Expect(w.gone(pv)).To(BeTrue())
	})

	It("is no error when the cache still shows it after it is gone", func() {
		w := newWorld(reconciler.ClusterScope)
		pv := Volume("v")
		w.create(pv)
		shown := pv.DeepCopy()
		shown.Finalizers = nil
		w.delete(pv)
		w.settle()
		Expect(w.gone(pv)).To(BeTrue())

		w.views.volumes.Client = stale{w, []client.Object{shown}}
		_, err := w.volumes.Reconcile(GinkgoT().Context(), wake.Request(shown))

		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("fails, and says what to do, when nothing here can apply its policy",
		func(policy corev1.PersistentVolumeReclaimPolicy, reason string) {
			w := newWorld(reconciler.ClusterScope)
			claim, pv := Claim(), Volume("v", Reclaimed(policy))
			w.create(claim, pv)
			w.settle()

			w.delete(claim)
			w.settle()

			expectPhase(w, pv, corev1.VolumeFailed)
			Expect(eventsWith(w.newEvents(), reason)).To(ConsistOf(ContainSubstring("remove its data by hand")))
		},
		Entry("to delete", corev1.PersistentVolumeReclaimDelete, "VolumeFailedDelete"),
		Entry("to recycle", corev1.PersistentVolumeReclaimRecycle, "VolumeFailedRecycle"),
	)
})

func expectPhase(w *world, pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) {
	GinkgoHelper()
	w.get(pv)
	Expect(pv.Status.Phase).To(Equal(phase))
}
