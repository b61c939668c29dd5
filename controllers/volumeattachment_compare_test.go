package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
)

var _ = Describe("What a backend says is attached", func() {
	It("is no news where VolumeAttachments say the same", func() {
		w, _, _ := attached()
		w.newEvents()
		before := w.written

		w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
		w.settle()

		Expect(w.written).To(Equal(before))
		Expect(w.newEvents()).To(BeEmpty())
	})

	It("is attached again if it was detached outside of Stowage", func() {
		w, attachment, pv := attached()
		node := firstNode(w)
		w.storage.DetachBehind(pv.Spec.CSI.VolumeHandle)

		w.settle()

		expectAttached(w, attachment, pv, node)
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("VolumeDetachedElsewhere node node-1: the volume was detached outside of Stowage")))
	})

	DescribeTable("stays attached if a list doesn't show it because its labels were replaced",
		func(given func(*world)) {
			w, attachment, pv := attached()
			w.newEvents()
			w.storage.Unlist(pv.Spec.CSI.VolumeHandle)
			before := w.written
			for range 3 {
				given(w)
				_ = w.round()
				w.clock.SetTime(w.clock.Now().Add(time.Minute))
			}

			Expect(w.written).To(Equal(before))
			Expect(w.newEvents()).To(BeEmpty())
			expectAttached(w, attachment, pv, firstNode(w))
		},
		Entry("and it is found by its name", func(*world) {}),
		Entry("and the backend does not report now whether it is there", func(w *world) { w.storage.FailNext(backend.Unavailable.Errorf("503")) }),
	)

	It("is not attached again for an attachment that was deleted since the cache was updated", func() {
		w, attachment, pv := attached()
		w.get(attachment)
		seen := attachment.DeepCopy()
		w.delete(attachment)
		w.settle()
		w.views.comparisons.Client = staleList{w, seen}

		_, err := w.comparisons.Reconcile(GinkgoT().Context(), wake.RequestNamed("cloud"))

		Expect(err).NotTo(HaveOccurred())
		expectDetached(w, attachment, pv)
	})

	It("gets one event, and is detached after it was seen twice, if nothing requests it", func() {
		w, pv, node := clouded(reconciler.ClassesScope)
		w.storage.AttachBehind(pv.Spec.CSI.VolumeHandle, identityOf(node))
		w.settle()
		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
		Expect(w.newEvents()).To(ConsistOf(ContainSubstring("StrayAttachment volume " + pv.Name + " is attached to gce://project/zone/node-1")))

		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.settle()

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(BeEmpty())
		Expect(w.all(&storagev1.VolumeAttachmentList{})).To(BeEmpty())
		Expect(w.newEvents()).To(BeEmpty())
	})

	It("stays where a CSI call attached it, though no object requests it", func() {
		w, _, node := clouded(reconciler.ClassesScope)
		w.storage.Begin(madeByCall, backend.Request{})
		w.storage.AttachBehind(madeByCall, identityOf(node))
		for range 3 {
			w.settle()
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
		}

		Expect(w.storage.AttachedTo(madeByCall)).To(HaveLen(1))
		Expect(w.newEvents()).To(BeEmpty())
	})

	It("stays while a node uses it, though nothing requests it", func() {
		w, pv, node := clouded(reconciler.ClassesScope)
		updateNode(w, node, using(pv))
		w.storage.AttachBehind(pv.Spec.CSI.VolumeHandle, identityOf(node))
		for range 3 {
			w.settle()
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
		}
		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))

		updateNode(w, node, func(node *corev1.Node) { node.Status.VolumesInUse = nil })
		w.settle()

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(BeEmpty())
	})

	It("stays while a node that has long been Ready uses it, though it is not in volumesAttached", func() {
		w, pv, node := clouded(reconciler.ClassesScope)
		updateNode(w, node, together(using(pv), readyFor(2*time.Hour)))
		w.storage.AttachBehind(pv.Spec.CSI.VolumeHandle, identityOf(node))
		for range 3 {
			w.settle()
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
		}

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
	})

	It("only gets an event if the machine is none of the cluster's", func() {
		w, pv, _ := clouded(reconciler.ClassesScope)
		w.storage.AttachBehind(pv.Spec.CSI.VolumeHandle, backend.NodeIdentity{ProviderID: "gce://project/zone/rescue"})
		for range 3 {
			w.settle()
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
		}

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
		Expect(w.newEvents()).To(ConsistOf(ContainSubstring("that is no node of this cluster")))
	})

	It("is left alone if an attachment requests it that the cache does not show", func() {
		w, _, pv := attached()
		w.views.comparisons.Client = withoutAttachments{w}
		for range 3 {
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
			w.settle()
		}

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
		Expect(w.newEvents()).To(BeEmpty())
	})

	It("is detached though its volume object is gone", func() {
		w, pv, node := clouded(reconciler.ClassesScope)
		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
		w.delete(pv)
		w.storage.AttachBehind(pv.Name, identityOf(node))
		w.settle()

		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.settle()

		Expect(w.storage.AttachedTo(pv.Name)).To(BeEmpty())
		Expect(w.all(&storagev1.VolumeAttachmentList{})).To(BeEmpty())
	})

	It("is detached though the manager ended between making the attachment that ends it and deleting it", func() {
		w, pv, node := clouded(reconciler.ClassesScope)
		w.storage.AttachBehind(pv.Name, identityOf(node))
		w.settle()
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		_, err := w.comparisons.Reconcile(GinkgoT().Context(), wake.RequestNamed("cloud"))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.all(&storagev1.VolumeAttachmentList{})).To(HaveLen(1))

		w.restart()
		w.settle()

		Expect(w.storage.AttachedTo(pv.Name)).To(BeEmpty())
		Expect(w.all(&storagev1.VolumeAttachmentList{})).To(BeEmpty())
	})

	It("is an event if the backend does not answer", func() {
		w, _, _ := clouded(reconciler.ClassesScope)
		w.storage.FailListing(backend.Unavailable.Errorf("503"))

		w.settle()
		w.settle()

		Expect(w.newEvents()).To(ConsistOf(ContainSubstring("AttachmentCheckFailed listing what is attached: 503")))
	})
})
