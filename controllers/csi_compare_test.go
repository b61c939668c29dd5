package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("What a CSI driver lists as published", func() {
	attached := func() (*world, *storagev1.VolumeAttachment, *corev1.PersistentVolume) {
		GinkgoHelper()
		w, attachment, pv := attachedByDriver()
		w.driver.Lists()
		w.newEvents()
		return w, attachment, pv
	}
	strange := backend.NodeIdentity{ProviderID: "id-of-another-cluster"}

	It("is no news where VolumeAttachments say the same, and is listed once for each comparison", func() {
		w, _, _ := attached()
		before := w.written
		for range 3 {
			_ = w.round()
			w.passTime(2 * time.Minute)
		}

		Expect(w.written).To(Equal(before))
		Expect(w.newEvents()).To(BeEmpty())
		Expect(w.driver.Listed()).To(Equal(3))
		Expect(w.storage.Calls()).NotTo(ContainElement(HavePrefix("IsAttached")))
	})

	It("has a volume attached again that was detached elsewhere, once two lists say so", func() {
		w, attachment, pv := attached()
		w.storage.DetachBehind(pv.Name)
		_ = w.round()
		Expect(w.newEvents()).To(BeEmpty())
		Expect(w.storage.AttachedTo(pv.Name)).To(BeEmpty())

		_ = w.round()
		w.settle()

		Expect(w.storage.AttachedTo(pv.Name)).To(Equal([]string{"id-1"}))
		w.get(attachment)
		Expect(attachment.Status.Attached).To(BeTrue())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("VolumeDetachedElsewhere node node-1")))
	})

	It("says nothing of a volume that it doesn't have, nor where one list was late", func() {
		w, _, pv := attached()
		before := w.written
		w.storage.DetachBehind(pv.Name)
		_ = w.round()
		w.storage.AttachBehind(pv.Name, backend.NodeIdentity{ProviderID: "id-1"})
		_ = w.round()
		w.storage.Unlist(pv.Name)
		w.storage.DetachBehind(pv.Name)
		for range 3 {
			_ = w.round()
		}

		Expect(w.written).To(Equal(before))
		Expect(w.newEvents()).To(BeEmpty())
	})

	It("has a volume detached that no VolumeAttachment requests on its node", func() {
		w, attachment, pv := attached()
		w.delete(attachment)
		w.settle()
		w.create(machine("node-2"), registered("node-2", "id-2"))
		w.storage.AttachBehind(pv.Name, backend.NodeIdentity{ProviderID: "id-2"})
		_ = w.round()
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("StrayAttachment volume " + pv.Spec.CSI.VolumeHandle + " is attached to id-2")))
		Expect(w.storage.AttachedTo(pv.Name)).To(HaveLen(1))

		w.passTime(2 * time.Minute)
		w.settle()

		Expect(w.storage.AttachedTo(pv.Name)).To(BeEmpty())
		Expect(w.all(&storagev1.VolumeAttachmentList{})).To(BeEmpty())
	})

	It("is left alone on nodes of other clusters", func() {
		w, attachment, pv := attached()
		w.delete(attachment)
		w.settle()
		w.newEvents()
		w.storage.AttachBehind(pv.Name, strange)
		for range 3 {
			_ = w.round()
			w.passTime(2 * time.Minute)
		}

		Expect(w.storage.AttachedTo(pv.Name)).To(HaveLen(1))
		Expect(w.newEvents()).To(BeEmpty())
	})

	It("is left alone where the volume wasn't made for this cluster", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		w.driver.Lists()
		pv := Volume("v", ofDriver(csiDriver))
		pv.Spec.CSI.VolumeHandle = "driver's/v"
		w.create(pv, machine("node-1"), registered("node-1", "id-1"))
		w.storage.Begin("v", backend.Request{})
		w.storage.AttachBehind("v", backend.NodeIdentity{ProviderID: "id-1"})
		w.settle()
		w.newEvents()
		for range 3 {
			_ = w.round()
			w.passTime(2 * time.Minute)
		}

		Expect(w.storage.AttachedTo("v")).To(HaveLen(1))
		Expect(w.newEvents()).To(BeEmpty())
	})

	It("is reported once where it can't be listed", func() {
		w, _, _ := attached()
		w.storage.FailListing(backend.Unavailable.Errorf("away"))
		for range 3 {
			_ = w.round()
		}

		Expect(w.newEvents()).To(ConsistOf(ContainSubstring("AttachmentCheckFailed listing what is attached: away")))
	})
})
