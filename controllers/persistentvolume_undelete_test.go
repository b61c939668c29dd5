package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// deadlineOf is the end of a volume's undelete window, as its status has to say it.
func deadlineOf(pv *corev1.PersistentVolume, window time.Duration) string {
	return pv.Status.LastPhaseTransitionTime.Add(window).UTC().Format(time.RFC3339)
}

var _ = Describe("The undelete window", func() {
	It("is seen on the volume, with its deadline, and has an event when it begins", func() {
		w, claim, pv := madeVolumeOf(retainingFor(72 * time.Hour))
		w.newEvents()
		w.newLines()
		w.delete(claim)
		w.settle()

		w.get(pv)
		deadline := deadlineOf(pv, 72*time.Hour)
		Expect(pv.Status.Phase).To(Equal(corev1.VolumeReleased))
		Expect(pv.Status.Reason).To(Equal("UndeletableUntil" + deadline))
		Expect(pv.Status.Message).To(ContainSubstring("of claim " + claim.Namespace + "/" + claim.Name + " is kept until " + deadline))
		// One is on the volume, one in the namespace of the claim.
		Expect(eventsWith(w.newEvents(), "UndeleteWindowBegan")).To(HaveEach(ContainSubstring("is kept until " + deadline)))
		Expect(w.newLines()).To(ConsistOf(ContainSubstring(`"msg"="released"`), ContainSubstring(`"msg"="kept"`)))

		for range 3 {
			w.settle()
			w.passTime(time.Hour)
			w.restart()
		}
		Expect(w.newEvents()).To(BeEmpty())
	})

	It("has a warning an hour before it ends, once", func() {
		w, claim, _ := madeVolumeOf(retainingFor(72 * time.Hour))
		w.delete(claim)
		w.settle()
		w.newEvents()

		w.passTime(70*time.Hour + 59*time.Minute)
		w.settle()
		Expect(w.newEvents()).To(BeEmpty())
		w.passTime(2 * time.Minute)
		w.settle()
		w.settle()

		Expect(w.newEvents()).To(And(HaveLen(2), HaveEach(HavePrefix("Warning UndeleteWindowEnds the data of volume"))))
	})

	It("has no warning if it is an hour long", func() {
		w, claim, _ := madeVolumeOf(retainingFor(time.Hour))
		w.delete(claim)
		w.settle()

		w.passTime(30 * time.Minute)
		w.settle()

		Expect(eventsWith(w.newEvents(), "UndeleteWindowEnds")).To(BeEmpty())
	})

	It("isn't seen any more once the data is to stay", func() {
		w, claim, pv := madeVolumeOf(retainingFor(72 * time.Hour))
		w.delete(claim)
		w.settle()

		update(w, pv, retain)
		w.settle()

		w.get(pv)
		Expect(pv.Status.Reason).To(BeEmpty())
		Expect(pv.Status.Message).To(BeEmpty())
		Expect(pv.Status.Phase).To(Equal(corev1.VolumeReleased))
	})

	It("isn't seen any more on a volume that went back to a claim, and whose policy is Delete again", func() {
		w, claim, pv := madeVolumeOf(retainingFor(72 * time.Hour))
		w.delete(claim)
		w.settle()
		// The recipe of docs/operate/undelete.md.
		update(w, pv, func(pv *corev1.PersistentVolume) {
			retain(pv)
			reserve("restored")(pv)
		})
		restored := Claim(ClaimNamed("restored"), InClass("disks"), AskingFor(pv.Name))
		w.create(restored)
		w.settle()
		expectBound(w, restored, pv)

		update(w, pv, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		})
		w.settle()

		w.get(pv)
		Expect(pv.Status.Reason).To(BeEmpty())
		Expect(w.storage.Has(pv.Name)).To(BeTrue())
	})

	It("is seen beside kube-controller-manager, too", func() {
		w, pv, _ := clouded(reconciler.ClassesScope, retainingFor(72*time.Hour))
		claim := Claim(InClass("cloud"))
		w.get(claim)
		w.removeFinalizers(claim)
		w.delete(claim)
		setPhase(w, pv, corev1.VolumeReleased)
		w.settle()

		w.get(pv)
		Expect(pv.Status.Reason).To(Equal("UndeletableUntil" + deadlineOf(pv, 72*time.Hour)))
		Expect(eventsWith(w.newEvents(), "UndeleteWindowBegan")).NotTo(BeEmpty())
	})
})
