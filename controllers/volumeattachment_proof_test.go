package controllers

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("An attachment that the reconciler of nodes deleted a moment ago", func() {
	It("is detached without a live read", func() {
		w, attachment, pv := leftByItsPod()
		w.views.attachments.live.Reader = unread{w.reads}

		w.attachOnce(attachment)

		expectDetached(w.world, attachment, pv)
	})

	It("is detached without a live read though the node lists it again by now: it waits until it is marked as attached", func() {
		w, attachment, pv := leftByItsPod()
		w.views.attachments.live.Reader = unread{w.reads}
		updateNode(w.world, firstNode(w.world), using(pv))

		w.attachOnce(attachment)

		expectDetached(w.world, attachment, pv)
	})

	DescribeTable("stays if it is another one by now, which the cache doesn't show, and this process may not be alone",
		func(doubt func(*nodeWorld)) {
			w, attachment, pv := leftByItsPod()
			seen := attachment.DeepCopy()
			doubt(w)
			again := attachedAgainByAnotherManager(w, seen, pv)
			w.views.attachments.Client = stale{w, []client.Object{seen}}

			_, _ = w.attachments.Reconcile(GinkgoT().Context(), wake.Request(seen))

			expectAttached(w.world, again, pv, firstNode(w.world))
		},
		Entry("because it may lead no more", func(w *nodeWorld) { w.leads = follows }),
		Entry("because it leads no more right before the call", func(w *nodeWorld) {
			looks := 0
			w.leads = func() bool { looks++; return looks <= 2 }
		}),
		Entry("because it was paused for ten seconds", func(w *nodeWorld) { w.passTime(attachintent.LongMoment + 1) }),
		Entry("because it detached the deleted one itself", func(w *nodeWorld) { w.deleted.Take(w.attachmentsOf("node-1")[0]) }),
	)

	It("stays if the node is another machine by now, whose status shows nothing about the earlier one", func() {
		w, attachment, pv := neededByAPod()
		w.settle()
		w.delete(firstNode(w.world))
		another := managedNode("node-1")
		another.Spec.ProviderID = "gce://project/zone/another"
		w.create(another)
		w.passTime(2 * time.Minute)
		w.delete(Pod("user", "node-1", Claim().Name))
		Expect(w.reconcile("node-1")).To(Succeed())

		w.attachOnce(attachment)

		w.get(attachment)
		Expect(attachment.DeletionTimestamp).NotTo(BeNil())
		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
	})

	It("is not deleted twice, nor marked as attached again, where the cache of nodes doesn't show that yet", func() {
		w, attachment, _ := neededByAPod()
		w.settle()
		w.get(attachment)
		shown := attachment.DeepCopy()
		w.delete(Pod("user", "node-1", Claim().Name))
		Expect(w.reconcile("node-1")).To(Succeed())
		w.create(Pod("back", "node-1", Claim().Name))
		w.views.nodes.Client, w.views.nodes.live.Reader = nodeIndexes{staleList{w, shown}}, unread{w.reads}
		before := w.written

		Expect(w.reconcile("node-1")).To(Succeed())

		Expect(w.written).To(Equal(before))
		Expect(w.volumesAttached(firstNode(w.world))).To(BeEmpty())
	})

	for _, kind := range []fault{lost, unanswered, contended} {
		It("ends with nothing attached where the last write is "+string(kind), func() {
			w, attachment, pv := leftByItsPod()
			w.faults = map[int]fault{w.written: kind}

			_, _ = w.attachments.Reconcile(GinkgoT().Context(), wake.Request(attachment))
			w.settle()

			expectDetached(w.world, attachment, pv)
		})
	}
})

var _ = Describe("An attachment that the reconciler of nodes created a moment ago", func() {
	It("is attached without a live read", func() {
		w, attachment, pv := neededByAPod()
		w.views.attachments.live.Reader = unread{w.reads}

		w.attachOnce(attachment)

		expectAttached(w.world, attachment, pv, firstNode(w.world))
	})

	DescribeTable("has its volume read live", func(doubt func(*nodeWorld, *corev1.PersistentVolume)) {
		w, attachment, pv := neededByAPod()
		shown := pv.DeepCopy()
		doubt(w, shown)
		w.views.attachments.Client = stale{w, []client.Object{shown}}
		w.views.attachments.live.Reader = unread{w.reads}

		_, err := w.attachments.Reconcile(GinkgoT().Context(), wake.Request(attachment))

		Expect(err).To(MatchError(ContainSubstring("a live read was not expected")))
	},
		Entry("ten seconds later", func(w *nodeWorld, _ *corev1.PersistentVolume) { w.passTime(attachintent.LongMoment + 1) }),
		Entry("a second later, if the manager may lead no more", func(w *nodeWorld, _ *corev1.PersistentVolume) {
			w.leads = follows
			w.passTime(attachintent.Moment + 1)
		}),
		Entry("if the cache shows its deletion", func(_ *nodeWorld, shown *corev1.PersistentVolume) {
			shown.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}),
		Entry("if the cache shows other storage", func(_ *nodeWorld, shown *corev1.PersistentVolume) { shown.Spec.CSI.VolumeHandle = "another" }),
		Entry("if the cache shows another driver", func(_ *nodeWorld, shown *corev1.PersistentVolume) { shown.Spec.CSI.Driver = foreignDriver }),
		Entry("if the cache shows it without the finalizer that keeps it", func(_ *nodeWorld, shown *corev1.PersistentVolume) { shown.Finalizers = nil }),
	)

	It("says that the storage is gone, with its volume, which an old cache still shows", func() {
		w, attachment, pv := neededByAPod()
		w.views.attachments.Client = stale{w, []client.Object{pv.DeepCopy()}}
		w.forceDelete(pv)
		Expect(w.storage.Delete(GinkgoT().Context(), pv.Spec.CSI.VolumeHandle)).To(Succeed())

		_, _ = w.attachments.Reconcile(GinkgoT().Context(), wake.Request(attachment))

		w.get(attachment)
		Expect(attachment.Status.Attached).To(BeFalse())
		Expect(attachment.Status.AttachError).NotTo(BeNil())
	})

	It("goes where another volume has its name by now, which an old cache doesn't show", func() {
		w, attachment, old := neededByAPod()
		w.forceDelete(old.DeepCopy())
		another := Volume(old.Name, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource, pv.Spec.ClaimRef = *old.Spec.PersistentVolumeSource.DeepCopy(), old.Spec.ClaimRef
			pv.Spec.CSI.VolumeHandle = "another"
		})
		w.create(another)
		w.views.attachments.Client = stale{w, []client.Object{old}}
		w.attachOnce(attachment)
		w.views.attachments.Client = w

		w.settle()

		expectDetached(w.world, attachment, old)
		Expect(w.attachmentsOf("node-1")).To(ConsistOf(HaveField("Name", attachmentTo("node-1", another).Name)))
	})
})

// neededByAPod is a cluster in which the reconciler of nodes has just created the attachment of a pod's volume.
func neededByAPod() (*nodeWorld, *storagev1.VolumeAttachment, *corev1.PersistentVolume) {
	GinkgoHelper()
	w := newNodeWorld()
	_, pv, node := cloudedIn(w.world)
	update(w.world, node, func(node *corev1.Node) { node.Annotations = managedNode(node.Name).Annotations })
	w.create(Pod("user", node.Name, Claim().Name))
	Expect(w.reconcile(node.Name)).To(Succeed())
	return w, w.attachmentsOf(node.Name)[0], pv
}

// leftByItsPod is a cluster in which the reconciler of nodes has just deleted the attachment of a volume, as its pod is gone.
func leftByItsPod() (*nodeWorld, *storagev1.VolumeAttachment, *corev1.PersistentVolume) {
	GinkgoHelper()
	w, attachment, pv := neededByAPod()
	w.settle()
	w.delete(Pod("user", "node-1", Claim().Name))
	Expect(w.reconcile("node-1")).To(Succeed())
	w.get(attachment)
	Expect(attachment.DeletionTimestamp).NotTo(BeNil())
	Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
	return w, attachment, pv
}

// attachedAgainByAnotherManager is an attachment of the same name as one that ended.
func attachedAgainByAnotherManager(w *nodeWorld, ended *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) *storagev1.VolumeAttachment {
	GinkgoHelper()
	w.forceDelete(ended.DeepCopy())
	again := attachmentTo(ended.Spec.NodeName, pv)
	again.Annotations = map[string]string{stowagev1alpha1.AttachmentAnnotation: ended.Annotations[stowagev1alpha1.AttachmentAnnotation]}
	again.Finalizers = ended.Finalizers
	w.create(again)
	again.Status.Attached = true
	Expect(w.direct.Status().Update(GinkgoT().Context(), again)).To(Succeed())
	return again
}

// unread is an API server that a reconciler was not to read.
type unread struct{ client.Reader }

func (unread) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("a live read was not expected")
}

func (unread) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("a live list was not expected")
}
