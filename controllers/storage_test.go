package controllers

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	backendqueue "github.com/stowage-dev/stowage/internal/backend/queue"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A backend that takes its time", func() {
	It("is reported on the claim, and its answer is used", func() {
		w := newWorld(reconciler.ClusterScope)
		w.dispatch()
		release := w.storage.Hold()
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"), claim)
		for range 3 {
			_ = w.round()
		}
		Expect(w.condition(claim)).To(HaveField("Message", "waiting for StorageBackend disks to answer"))

		release()

		Eventually(func(g Gomega) {
			_ = w.round()
			w.get(claim)
			g.Expect(claim.Spec.VolumeName).To(Equal(provisioned.VolumeID(claim)))
		}).Should(Succeed())
		Expect(w.storage.Calls()).To(HaveLen(1))
	})

	It("loses nothing of a claim that is deleted during that", func() {
		w := newWorld(reconciler.ClusterScope)
		w.dispatch()
		release := w.storage.Hold()
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"), claim)
		for range 3 {
			_ = w.round()
		}
		w.delete(claim)
		for range 3 {
			_ = w.round()
		}
		Expect(w.gone(claim)).To(BeFalse())

		release()

		Eventually(func() bool {
			_ = w.round()
			return w.gone(claim)
		}).Should(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
		Expect(slices.Contains(w.storage.Calls(), "Delete "+provisioned.VolumeID(claim))).To(BeTrue())
	})
})

// dispatch has the calls to the backend made in goroutines, as in the manager.
func (w *world) dispatch() {
	w.served.Queue = backendqueue.New(GinkgoT().Context(), w.served.Metrics)
}

var _ = Describe("A volume with a queued removal", func() {
	It("is kept when its policy becomes Retain before the deletion", func() {
		w := newWorldIn(newMemory())
		w.dispatch()
		one := LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) { object.Spec.MaxConcurrentOperations = 1 })
		first, second := Claim(ClaimNamed("first"), InClass("disks")), Claim(ClaimNamed("second"), InClass("disks"))
		w.create(one, first, second)
		Eventually(func() int {
			w.settle() // a call that takes long on a busy machine is answered in a later round
			return w.storage.Len()
		}).Should(Equal(2))
		w.settle()
		release := w.storage.Hold()
		w.delete(first)
		w.delete(second)
		for range 6 {
			_ = w.round()
		}

		for _, claim := range []*corev1.PersistentVolumeClaim{first, second} {
			update(w, Volume(provisioned.VolumeID(claim)), Reclaimed(corev1.PersistentVolumeReclaimRetain))
		}
		release()

		Eventually(func(g Gomega) {
			_ = w.round()
			g.Expect(w.all(&corev1.PersistentVolumeList{})).To(BeEmpty())
		}).Should(Succeed())
		Expect(w.storage.Len()).To(Equal(1))
	})
})
