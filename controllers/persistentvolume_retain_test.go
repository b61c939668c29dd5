package controllers

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("Data that a person wants to keep", func() {
	It("is no orphan, and no audit removes it, when its volume is deleted", func() {
		w, pv := retained()
		w.removeOrphansAfter(time.Hour)
		w.delete(pv)
		w.settle()
		Expect(w.gone(pv)).To(BeTrue())
		Expect(eventsWith(w.newEvents(), "VolumeRetained")).To(ConsistOf(ContainSubstring("it lies in memory, as " + pv.Name)))

		for range 3 {
			w.passTime(1000 * time.Hour)
			w.settle()
		}

		Expect(w.storage.Has(pv.Name)).To(BeTrue())
		Expect(w.audit().Orphans).To(BeEmpty())
		Expect(w.audit().Retained).To(BeEquivalentTo(1))
		Expect(eventsWith(w.newEvents(), "OrphansFound")).To(BeEmpty())
	})

	It("is kept by a volume that was condemned already, and says where it lies", func() {
		w, claim, pv := madeVolumeOf()
		w.removeOrphansAfter(time.Hour)
		w.storage.FailNext(slices.Repeat([]error{backend.Unavailable.Errorf("the storage is away")}, maxRounds)...)
		w.delete(claim)
		w.settle()
		w.storage.FailNothing()

		update(w, pv, retain)
		w.settle()
		w.passTime(1000 * time.Hour)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Has(pv.Name)).To(BeTrue())
		Expect(eventsWith(w.newEvents(), "VolumeRetained")).To(HaveLen(1))
	})

	It("is recorded before its volume goes, however long the storage is away", func() {
		w, pv := retained()
		w.storage.FailNext(slices.Repeat([]error{backend.Unavailable.Errorf("the storage is away")}, 5)...)
		w.delete(pv)
		for range 5 {
			_ = w.round()
		}
		Expect(w.gone(pv)).To(BeFalse())
		Expect(eventsWith(w.newEvents(), "VolumeFailedRetain")).To(ConsistOf(ContainSubstring("the storage is away")))

		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Calls()).To(ContainElement("Retain " + pv.Name))
	})

	for _, kind := range []fault{lost, unanswered, contended} {
		It("is recorded, also when the write that releases its volume is "+string(kind), func() {
			w, pv := retained()
			w.delete(pv)
			for number := range 2 {
				w.faults = map[int]fault{w.written + number: kind}
				_ = w.round()
				w.restart()
			}
			w.settle()
			w.passTime(time.Hour)
			w.settle()
			Expect(w.gone(pv)).To(BeTrue())
			Expect(w.audit().Retained).To(BeEquivalentTo(1))
		})
	}

	It("goes when a volume of policy Delete is made for it, and deleted", func() {
		w, pv := retained()
		w.delete(pv)
		w.settle()
		adopted := Volume("adopted", inBackend("disks"), withHandle(pv.Name), Reclaimed(corev1.PersistentVolumeReclaimDelete))
		adopted.Annotations = pv.Annotations
		w.create(adopted)
		w.settle()

		w.delete(adopted)
		w.settle()

		Expect(w.gone(adopted)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	DescribeTable("delays nothing where nothing could be removed anyway:",
		func(spoil func(*world, *corev1.PersistentVolume)) {
			w, pv := retained()
			spoil(w, pv)
			w.delete(pv)
			w.settle()
			Expect(w.gone(pv)).To(BeTrue())
		},
		Entry("its StorageBackend is gone", func(w *world, _ *corev1.PersistentVolume) { w.forceDelete(LocalBackend("disks")) }),
		Entry("its storage is gone", func(w *world, pv *corev1.PersistentVolume) { w.storage.Lose(pv.Name) }),
		Entry("its storage is another's", func(w *world, _ *corev1.PersistentVolume) {
			w.storage.FailNext(backend.Conflict.Errorf("it is another cluster's"))
		}),
	)
})

// retained is a cluster with a volume whose claim is gone, and whose data is to stay.
func retained() (*world, *corev1.PersistentVolume) {
	GinkgoHelper()
	w, claim, pv := madeVolumeOf()
	update(w, pv, retain)
	w.delete(claim)
	w.settle()
	expectPhase(w, pv, corev1.VolumeReleased)
	return w, pv
}
