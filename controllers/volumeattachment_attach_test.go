package controllers

import (
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/volumeattachment"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("An attachment of one of Stowage's volumes", func() {
	for _, scope := range []reconciler.Scope{reconciler.ClusterScope, reconciler.ClassesScope} {
		It("is attached in scope="+string(scope)+", with the metadata by which the node finds the device", func() {
			w, pv, node := clouded(scope)
			attachment := attachmentTo(node.Name, pv)
			w.create(attachment)

			w.settle()

			expectAttached(w, attachment, pv, node)
			Expect(attachment.Status.AttachmentMetadata).To(HaveKeyWithValue(backend.SerialMetadata, pv.Spec.CSI.VolumeHandle))
			Expect(attachment.Finalizers).To(ConsistOf("external-attacher/gce-stowage-dev"))
			w.get(pv)
			Expect(pv.Finalizers).To(ContainElement("external-attacher/gce-stowage-dev"))
		})
	}

	It("takes one write where it was prepared and its volume was provisioned", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		attachintent.Prepare(attachment, pv, node)
		w.create(attachment)

		before := w.written
		w.settle()

		Expect(w.written - before).To(Equal(1))
		expectAttached(w, attachment, pv, node)
	})

	It("is none of our business where the driver isn't ours", func() {
		w := newWorld(reconciler.ClusterScope)
		attachment := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "disks.example.com", NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("v")},
		}}
		attachment.Name = "theirs"
		w.create(attachment)

		w.settle()

		Expect(w.written).To(BeZero())
	})

	It("is there at once, and goes at once, where its driver attaches nothing", func() {
		w := newWorld(reconciler.ClusterScope)
		attachment := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{
			Attacher: stowagev1alpha1.NFSDriver, NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("v")},
		}}
		attachment.Name = "nothing-to-do"
		w.create(attachment)
		w.settle()
		w.get(attachment)
		Expect(attachment.Status.Attached).To(BeTrue())
		Expect(w.storage.Calls()).To(BeEmpty())

		w.delete(attachment)
		w.settle()

		Expect(w.gone(attachment)).To(BeTrue())
	})

	It("says why it fails, on the volume too and once, and then that it doesn't any more", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		full := backend.Exhausted.Errorf("the node has 16 disks, and room for no more")
		w.storage.FailNext(full, full, full)
		for range 3 {
			_ = w.round()
		}
		w.get(attachment)
		Expect(attachment.Status.AttachError.Message).To(Equal(full.Error()))
		Expect(attachment.Status.AttachError.ErrorCode).To(HaveValue(BeEquivalentTo(8)))
		Expect(w.newEvents()).To(HaveExactElements(
			ContainSubstring("FailedAttachVolume attaching to node node-1: the node has 16 disks"),
			ContainSubstring("FailedAttachVolume attaching to node node-1: the node has 16 disks"),
		))

		w.settle()

		expectAttached(w, attachment, pv, node)
	})

	It("waits as long as the storage requests a pause, and keeps its earlier error", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		refusal, pause := backend.Unavailable.Errorf("too many calls"), backend.Unavailable.Errorf("later: %w", pausedFor(w, 7*time.Second))
		w.storage.FailNext(refusal, pause)
		_ = w.round()

		result, err := w.attachments.Reconcile(GinkgoT().Context(), wake.Request(attachment))

		Expect(err).NotTo(HaveOccurred(), "a call that isn't made doesn't fail, and is no reason to wait longer the next time")
		Expect(result.RequeueAfter).To(Equal(7 * time.Second))
		w.get(attachment)
		Expect(attachment.Status.AttachError.Message).To(Equal("too many calls"))
		Expect(w.newEvents()).To(HaveLen(2), "one of the attachment, one of the volume")
		w.settle()
		expectAttached(w, attachment, pv, node)
	})

	It("calls again soon for work in flight, as a pod waits for it, and reports nothing until then", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		w.storage.FailNext(backend.InProgress.Errorf("the operation goes on"))

		result, err := w.attachments.Reconcile(GinkgoT().Context(), wake.Request(attachment))

		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(volumeattachment.RetryUnfinished))
		w.get(attachment)
		Expect(attachment.Status.AttachError).To(BeNil())
		Expect(w.newEvents()).To(BeEmpty())
	})

	It("is attached once, though the answer to the call was lost", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		w.storage.AttachBehind(pv.Spec.CSI.VolumeHandle, identityOf(node))
		w.storage.FailNext(backend.Unavailable.Errorf("the connection broke"))

		w.settle()
		w.settle()

		expectAttached(w, attachment, pv, node)
	})

	It("waits for a node that isn't there, and is attached when it registers", func() {
		w, pv, _ := clouded(reconciler.ClusterScope)
		attachment := attachmentTo("node-2", pv)
		w.create(attachment)
		w.settle()
		w.get(attachment)
		Expect(attachment.Status.AttachError.Message).To(ContainSubstring("there is no node node-2"))

		node := machine("node-2")
		w.create(node)
		w.settle()

		expectAttached(w, attachment, pv, node)
	})

	It("says that its StorageBackend is gone", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		object := cloud()
		update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Finalizers = nil })
		w.delete(object)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)

		w.settle()

		w.get(attachment)
		Expect(attachment.Status.AttachError.Message).To(Equal("StorageBackend cloud is gone: create it again"))
	})

	It("is not attached any more once its volume is being deleted, and goes when it is deleted", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = append(pv.Finalizers, "example.com/keep") })
		w.delete(Claim())
		w.settle()
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		w.settle()
		w.get(attachment)
		Expect(attachment.Status.AttachError.Message).To(ContainSubstring("is being deleted"))

		w.delete(attachment)
		w.settle()

		expectDetached(w, attachment, pv)
	})

	It("is attached while a claim is bound to its volume, though that is being deleted", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		w.delete(pv)
		w.settle()
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)

		w.settle()

		expectAttached(w, attachment, pv, node)
	})

	It("ends where another machine has its node's name, and the disk is only taken once the first is gone", func() {
		w, attachment, pv := attached()
		node := firstNode(w)
		first := identityOf(node)
		w.delete(node)
		again := machine("node-1")
		again.Spec.ProviderID = "gce://project/zone/node-1-again"
		w.create(again)
		w.settle()
		expectStays(w, attachment, pv, "there is no Node object")

		w.storage.SetMachine(first, backend.MachineGone)
		w.settle()

		expectDetached(w, attachment, pv)
	})
})

var _ = Describe("A volume that one node at a time can have", func() {
	It("is attached to a second node when the first has released it, with one event", func() {
		w, first, pv := attached()
		other := machine("node-2")
		second := attachmentTo(other.Name, pv)
		w.create(other, second)
		for range 3 {
			_ = w.round()
		}
		w.get(second)
		Expect(second.Status.AttachError.Message).To(ContainSubstring("is attached to node node-1, and one node at a time can have it"))
		Expect(w.newEvents()).To(HaveLen(2))

		w.delete(first)
		w.settle()

		expectAttached(w, second, pv, other)
	})

	It("is attached once, though another volume object stands for it", func() {
		w, _, pv := attached()
		node := firstNode(w)
		twin, other := twinOf(pv), machine("node-2")
		w.create(twin, other)
		second := attachmentTo(other.Name, twin)
		w.create(second)

		w.settle()

		w.get(second)
		Expect(second.Status.Attached).To(BeFalse())
		Expect(second.Status.AttachError.Message).To(ContainSubstring("is attached to node node-1"))
		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(ConsistOf(node.Spec.ProviderID))
	})

	It("is attached once by two leaders at once, to two nodes, with caches that saw neither attachment of the other", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		other := machine("node-2")
		first, second := attachmentTo(node.Name, pv), attachmentTo(other.Name, pv)
		w.create(other, first, second)
		leaders := []*volumeattachment.Reconciler{w.attachments, volumeattachment.New(w.dependencies(newView(w)))}
		w.written = 0
		for range 5 {
			var acting sync.WaitGroup
			for i, attachment := range []*storagev1.VolumeAttachment{first, second} {
				acting.Go(func() { _, _ = leaders[i].Reconcile(GinkgoT().Context(), wake.Request(attachment)) })
			}
			acting.Wait()
		}

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
		w.get(first)
		w.get(second)
		Expect([]bool{first.Status.Attached, second.Status.Attached}).To(ConsistOf(true, false))
	})

	It("goes to the attachment that was created first, whatever the order of reconciles", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		other := machine("node-2")
		first := attachmentTo(node.Name, pv)
		w.create(other, first)
		second := attachmentTo(other.Name, pv)
		createLater(w, second, first)
		_, _ = w.attachments.Reconcile(GinkgoT().Context(), wake.Request(second))
		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(BeEmpty())

		w.settle()

		expectAttached(w, first, pv, node)
	})

	It("is not attached for an attachment that was deleted since the cache was updated", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		attachintent.Prepare(attachment, pv, node)
		w.create(attachment)
		seen := attachment.DeepCopy()
		w.delete(attachment)
		w.settle()
		w.views.attachments.Client = stale{w, []client.Object{seen}}

		_, _ = w.attachments.Reconcile(GinkgoT().Context(), wake.Request(seen))

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(BeEmpty())
	})
})

var _ = Describe("A volume that nodes only read", func() {
	It("is attached to several", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		other, shared := machine("node-2"), twinOf(pv)
		shared.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		w.create(other, shared)
		w.create(attachmentTo(node.Name, shared), attachmentTo(other.Name, shared))

		w.settle()

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(2))
	})
})

var _ = Describe("Attaching that is interrupted", func() {
	for _, kind := range []fault{lost, unanswered, contended} {
		It("ends with the volume attached, whichever write is "+string(kind), func() {
			for number := range 3 {
				w, pv, node := cloudedIn(newWorldIn(newMemory()))
				attachment := attachmentTo(node.Name, pv)
				w.create(attachment)
				w.faults = map[int]fault{w.written + number: kind}

				_ = w.round()
				Expect(w.written).To(BeNumerically(">", number))
				w.restart()
				w.settle()

				expectAttached(w, attachment, pv, node)
			}
		})

		It("leaves nothing attached if the attachment is deleted, whichever write is "+string(kind), func() {
			for number := range 3 {
				w, pv, node := cloudedIn(newWorldIn(newMemory()))
				attachment := attachmentTo(node.Name, pv)
				w.create(attachment)
				w.faults = map[int]fault{w.written + number: kind}

				_ = w.round()
				w.restart()
				w.delete(attachment)
				w.settle()

				expectDetached(w, attachment, pv)
			}
		})
	}
})

// pausedFor is an error of storage that requests a pause.
func pausedFor(w *world, duration time.Duration) error { return pause(w.clock.Now().Add(duration)) }

type pause time.Time

func (pause) Error() string { return "left alone" }

func (p pause) PausedUntil() time.Time { return time.Time(p) }
