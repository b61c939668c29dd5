package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A volume that was untied from its claim", func() {
	It("does not go to another claim that names it", func() {
		w := newWorld(reconciler.ClusterScope)
		owner, asking, pv := Claim(ClaimNamed("owner")), Claim(ClaimNamed("asking"), AskingFor("v")), Volume("v", ReservedTo("owner"))
		w.create(pv, owner, asking)
		w.settle()
		expectBound(w, owner, pv)

		update(w, pv, untie)
		w.settle()

		expectBound(w, owner, pv)
	})
})

var _ = Describe("A volume that was untied from its claim and deleted", func() {
	It("stays while the claim is bound to it, and is tied again", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v")
		w.create(claim, pv)
		w.settle()

		w.delete(pv)
		update(w, pv, untie)
		for range 3 {
			_, _ = w.volumes.Reconcile(GinkgoT().Context(), wake.Request(pv))
		}
		Expect(w.gone(pv)).To(BeFalse())

		w.settle()
		expectBound(w, claim, pv)
	})

	It("stays until its claim, which is deleted too, is used no more", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv, pod := Claim(), Volume("v"), Pod("user", "node-1", "data")
		w.create(claim, pv, pod)
		w.settle()

		w.delete(claim)
		w.delete(pv)
		update(w, pv, untie)
		w.settle()
		Expect(w.gone(pv)).To(BeFalse())

		w.delete(pod)
		w.settle()
		Expect(w.gone(pv)).To(BeTrue())
	})
})

var _ = Describe("A volume that is untied while its deleted claim is still used", func() {
	It("is tied again, and Released at the claim's end, and goes to no other claim", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv, pod := Claim(), Volume("v"), Pod("user", "node-1", "data")
		w.create(claim, pv, pod)
		w.settle()
		w.delete(claim)
		w.settle()
		stranger := Claim(ClaimNamed("stranger"))
		w.create(stranger)

		update(w, pv, untie)
		w.settle()
		w.delete(pod)
		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
		w.get(stranger)
		Expect(stranger.Spec.VolumeName).To(BeEmpty())
	})
})

// untie removes the claimRef of a volume, as people do it to free a released volume for
// others, and by mistake.
func untie(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }
