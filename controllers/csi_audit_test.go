package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("An audit of a CSI driver", func() {
	finds := backend.Inspection{FindsMissing: true}
	// audited is a cluster after one more audit.
	audited := func(w *world) *stowagev1alpha1.StorageBackend {
		GinkgoHelper()
		w.passTime(2 * time.Hour)
		w.settle()
		object := csiBackend()
		w.get(object)
		return object
	}

	It("says that it can't see orphans, and counts none", func() {
		w, _, _ := madeByDriver()
		w.storage.Begin("of-another-cluster", backend.Request{})
		w.driver.SetInspection(finds)
		object := audited(w)

		Expect(object.Status.Orphans).To(BeNil())
		Expect(object.Status.LostVolumes).To(HaveValue(BeZero()))
		Expect(object.Status.Audit.Unaudited).To(And(ContainSubstring("keeps no owner beside a volume"), Not(ContainSubstring("lost volumes"))))
		Expect(w.storage.Has("of-another-cluster")).To(BeTrue())
	})

	It("says that it can't see lost volumes either, where the driver can't", func() {
		w, _, pv := madeByDriver()
		w.storage.Lose(pv.Name)
		_ = audited(w)
		object := audited(w)

		Expect(object.Status.LostVolumes).To(BeNil())
		Expect(object.Status.Audit.LostVolumes).To(BeEmpty())
		Expect(object.Status.Audit.Unaudited).To(ContainSubstring("neither LIST_VOLUMES nor GET_VOLUME"))
	})

	It("reports a lost volume once two audits agree, and no more once it is back", func() {
		w, _, pv := madeByDriver()
		w.driver.SetInspection(finds)
		_ = audited(w)
		kept := w.driver.Request(pv.Name)
		w.storage.Lose(pv.Name)
		Expect(audited(w).Status.Audit.LostVolumes).To(BeEmpty())
		Expect(w.newEvents()).To(BeEmpty())

		object := audited(w)
		Expect(object.Status.Audit.LostVolumes).To(ConsistOf(pv.Name))
		Expect(object.Status.LostVolumes).To(HaveValue(BeEquivalentTo(1)))
		Expect(w.newEvents()).To(ConsistOf(ContainSubstring("Warning VolumesLost no storage is found of " + pv.Name)))

		w.restart()
		Expect(audited(w).Status.Audit.LostVolumes).To(ConsistOf(pv.Name), "after a restart")
		w.storage.Begin(pv.Name, kept)
		Expect(audited(w).Status.Audit.LostVolumes).To(BeEmpty())
	})

	It("reports no volume that a person made, nor one that one list lacked", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		w.driver.SetInspection(finds)
		pv := Volume("v", ofDriver(csiDriver))
		pv.Spec.CSI.VolumeHandle = "driver's/v"
		w.create(pv)
		_ = audited(w)
		Expect(audited(w).Status.Audit.LostVolumes).To(BeEmpty())
	})

	It("reports on the claim what is wrong with its volume, and that it is over, once for each change", func() {
		w, _, pv := madeByDriver()
		says := func(what map[string]string) []string {
			w.driver.SetInspection(backend.Inspection{Health: what})
			_ = audited(w)
			_ = audited(w)
			return w.newEvents()
		}
		Expect(says(map[string]string{pv.Spec.CSI.VolumeHandle: ""})).To(BeEmpty())
		Expect(says(map[string]string{pv.Spec.CSI.VolumeHandle: "DEGRADED (Slow)"})).To(ConsistOf(
			And(ContainSubstring("Warning VolumeConditionAbnormal"), ContainSubstring("DEGRADED (Slow)"))))
		Expect(says(nil)).To(BeEmpty(), "while the driver says nothing")
		Expect(says(map[string]string{pv.Spec.CSI.VolumeHandle: ""})).To(ConsistOf(ContainSubstring("Normal VolumeConditionNormal")))
	})

	It("is reported where it fails, and tried again", func() {
		w, _, _ := madeByDriver()
		last := audited(w).Status.Audit.Time
		w.storage.FailListing(backend.Unavailable.Errorf("away"))
		object := audited(w)

		Expect(object.Status.Audit.Time).To(Equal(last))
		Expect(w.newEvents()).To(ContainElement(And(ContainSubstring("Warning AuditFailed"), ContainSubstring("away"))))
	})
})
