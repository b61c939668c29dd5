package controllers

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("An attachment of a CSI driver with a StorageBackend", func() {
	It("is attached by the id that the driver gave the node, with the volume", func() {
		w, attachment, pv := attachedByDriver()

		Expect(attachment.Finalizers).To(ConsistOf("external-attacher/disk-example-com"))
		Expect(attachment.Annotations).To(HaveKeyWithValue("csi.alpha.kubernetes.io/node-id", "id-1"))
		Expect(attachment.Status.AttachmentMetadata).To(HaveKeyWithValue("instance", "the driver's own"))
		request := w.driver.Attaches()[0]
		Expect(request.ID).To(Equal(pv.Spec.CSI.VolumeHandle))
		Expect(request.Volume.Name).To(Equal(pv.Name))
		w.get(pv)
		Expect(pv.Finalizers).To(ContainElement("external-attacher/disk-example-com"))
	})

	It("waits until the driver has registered with the node", func() {
		w, _, pv := madeByDriver()
		w.create(machine("node-1"))
		attachment := attachmentTo("node-1", pv)
		w.create(attachment)
		w.settle()
		Expect(w.driver.Attaches()).To(BeEmpty())

		w.create(registered("node-1", "id-1"))
		w.settle()

		w.get(attachment)
		Expect(attachment.Status.Attached).To(BeTrue())
	})

	It("is detached from the node with the id on record, after the CSINode and the node are gone", func() {
		w, attachment, pv := attachedByDriver()
		w.delete(registered("node-1", ""))
		w.delete(Node("node-1"))

		w.delete(attachment)
		w.settle()
		Expect(w.storage.AttachedTo(pv.Name)).To(HaveLen(1))
		w.passTime(2 * forceDetachAfter)
		w.settle()

		Expect(w.gone(attachment)).To(BeTrue())
		Expect(w.storage.AttachedTo(pv.Name)).To(BeEmpty())
	})

	It("is made for the node of a pod, and taken by force once the node is gone for long enough", func() {
		w := newNodeWorld()
		DeferCleanup(func() { _ = w.direct.Delete(context.Background(), registered("node-1", "")) })
		node, claim := managedNode("node-1"), Claim(InClass("kept"))
		w.create(csiBackend(), node, registered("node-1", "id-1"), claim)
		w.settle()
		w.create(Pod("user", "node-1", "data"))
		w.settle()
		pv := Volume(provisioned.VolumeID(claim))
		w.get(pv)
		name := volume.UniqueName(csiDriver, pv.Spec.CSI.VolumeHandle)
		Expect(w.volumesAttached(node)).To(ConsistOf(string(name)))
		Expect(w.storage.AttachedTo(pv.Name)).To(Equal([]string{"id-1"}))
		w.uses(node, name)

		w.delete(Pod("user", "node-1", "data"))
		w.delete(node)
		w.settle()
		w.passTime(forceDetachAfter - time.Minute)
		w.settle()
		Expect(w.storage.AttachedTo(pv.Name)).To(HaveLen(1))
		w.passTime(2 * time.Minute)
		w.settle()

		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
		Expect(w.storage.AttachedTo(pv.Name)).To(BeEmpty())
	})

	It("is detached from the node with the id on record, though the driver gave it another since", func() {
		w, attachment, pv := attachedByDriver()
		w.delete(registered("node-1", ""))
		w.create(registered("node-1", "id-2"))
		w.settle()
		Expect(w.storage.AttachedTo(pv.Name)).To(Equal([]string{"id-1"}))

		w.delete(attachment)
		w.settle()

		Expect(w.gone(attachment)).To(BeTrue())
		Expect(w.storage.AttachedTo(pv.Name)).To(BeEmpty())
	})

	It("is made again where it may be attached by another id of the node", func() {
		w, _, pv := madeByDriver()
		w.create(machine("node-1"), registered("node-1", "id-2"))
		attachment := attachmentTo("node-1", pv)
		attachment.Annotations = map[string]string{attachintent.DriverIDAnnotation: "id-1"}
		attachment.Finalizers = []string{"external-attacher/disk-example-com"}
		w.create(attachment)
		w.settle()

		Expect(w.gone(attachment)).To(BeTrue())
		Expect(w.driver.Attaches()).To(BeEmpty())
		Expect(w.storage.Calls()).To(ContainElement(HavePrefix("Detach " + pv.Name)))
	})

	It("stays where nothing says by which id it is attached, and says what to do", func() {
		w, attachment, pv := attachedByDriver()
		w.delete(registered("node-1", ""))
		update(w, attachment, func(attachment *storagev1.VolumeAttachment) {
			delete(attachment.Annotations, attachintent.DriverIDAnnotation)
		})
		w.delete(attachment)
		w.settle()

		w.get(attachment)
		Expect(attachment.Status.DetachError.Message).To(ContainSubstring("detach the volume by hand"))
		Expect(w.storage.AttachedTo(pv.Name)).To(HaveLen(1))
	})

	It("keeps the storage of its volume", func() {
		w, attachment, pv := attachedByDriver()
		w.delete(Claim())
		w.settle()
		Expect(w.storage.Has(pv.Name)).To(BeTrue())

		w.delete(attachment)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("is left alone where there is no StorageBackend", func() {
		w := newWorld(reconciler.ClusterScope)
		pv := Volume("v", ofDriver(csiDriver))
		w.create(pv, machine("node-1"))
		attachment := attachmentTo("node-1", pv)
		w.create(attachment)
		w.settle()

		w.get(attachment)
		Expect(attachment.Finalizers).To(BeEmpty())
		Expect(attachment.Annotations).NotTo(HaveKey(stowagev1alpha1.AttachmentAnnotation))
		Expect(attachment.Status.Attached).To(BeFalse())
	})
})
