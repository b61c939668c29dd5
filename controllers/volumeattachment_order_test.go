package controllers

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/volumeattachment"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("An attachment that its manager prepared a moment ago", func() {
	It("is attached without a list of all attachments", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		w.views.attachments.live.Reader = unlistable{w.reads}

		w.attachOnce(attachment)

		expectAttached(w, attachment, pv, node)
	})

	It("is attached without a list of all attachments where the reconciler of nodes created it", func() {
		w := newNodeWorld()
		_, pv, node := cloudedIn(w.world)
		update(w.world, node, func(node *corev1.Node) { node.Annotations = map[string]string{attach.ManagedAnnotation: "true"} })
		w.create(Pod("user", node.Name, Claim().Name))
		Expect(w.reconcile(node.Name)).To(Succeed())
		attachment := w.attachmentsOf(node.Name)[0]
		w.views.attachments.live.Reader = unlistable{w.reads}

		w.attachOnce(attachment)

		expectAttached(w.world, attachment, pv, node)
	})

	It("waits for another of the same storage, though that one's volume object is gone", func() {
		w, _, pv := attached()
		twin, other := twinOf(pv), machine("node-2")
		w.create(twin, other)
		w.forceDelete(pv)
		second := attachmentTo(other.Name, twin)
		w.create(second)
		w.views.attachments.live.Reader = unlistable{w.reads}

		w.attachOnce(second)

		expectRefused(w, second)
	})

	DescribeTable("is attached by one of two managers, though their caches show no more than their own preparation",
		func(play func(older, younger *manager)) {
			w, pv, node := clouded(reconciler.ClusterScope)
			other := machine("node-2")
			w.create(other)
			older, younger := &manager{world: w, attachment: attachmentTo(node.Name, pv)}, &manager{world: w, attachment: attachmentTo(other.Name, pv)}
			w.create(older.attachment)

			play(older, younger)

			Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(ConsistOf(node.Spec.ProviderID))
			Expect(w.storage.Calls()).NotTo(ContainElement(And(HavePrefix("Attach"), HaveSuffix("to node-2"))))
		},
		Entry("the younger attachment's before the older's", func(older, younger *manager) {
			createLater(younger.world, younger.attachment, older.attachment)
			younger.attaches()
			older.attaches()
		}),
		Entry("the younger attachment's right after the older was prepared", func(older, younger *manager) {
			createLater(younger.world, younger.attachment, older.attachment)
			older.then = younger.attaches
			older.attaches()
		}),
		Entry("the older attachment's right after the younger was prepared", func(older, younger *manager) {
			createLater(younger.world, younger.attachment, older.attachment)
			younger.then = older.attaches
			younger.attaches()
		}),
		Entry("the younger attachment created and prepared after the older was prepared", func(older, younger *manager) {
			older.then = func() {
				createLater(younger.world, younger.attachment, older.attachment)
				younger.attaches()
			}
			older.attaches()
		}),
	)
})

var _ = Describe("An attachment whose manager's cache may be old", func() {
	DescribeTable("is compared with a live list", func(delay func(*world, *storagev1.VolumeAttachment)) {
		w, _, pv := attached()
		other := machine("node-2")
		second := attachmentTo(other.Name, pv)
		w.create(other, second)
		delay(w, second)

		w.attachOnce(second)

		expectRefused(w, second)
	},
		Entry("if ten seconds passed since it was prepared", func(w *world, second *storagev1.VolumeAttachment) {
			w.views.attachments.Client = afterPatch{showingOnly{w, second}, func() { w.passTime(attachintent.LongMoment + 1) }}
		}),
		Entry("if a second passed since it was prepared, and its manager may lead no more", func(w *world, second *storagev1.VolumeAttachment) {
			w.leads = follows
			w.views.attachments.Client = afterPatch{showingOnly{w, second}, func() { w.passTime(attachintent.Moment + 1) }}
		}),
		Entry("if the cache doesn't show how it was prepared", func(w *world, second *storagev1.VolumeAttachment) {
			w.views.attachments.Client = stale{showingOnly{w, second}, []client.Object{second.DeepCopy()}}
		}),
	)

	It("is compared with a live list if another manager prepared it", func() {
		w, _, pv := attached()
		other := machine("node-2")
		second := attachmentTo(other.Name, pv)
		attachintent.Prepare(second, pv, other)
		w.create(other, second)
		w.views.attachments.Client = showingOnly{w, second}

		w.attachOnce(second)

		expectRefused(w, second)
	})

	It("is compared with a live list when its call is repeated", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		other := machine("node-2")
		first, second := attachmentTo(node.Name, pv), attachmentTo(other.Name, pv)
		w.create(other, second)
		w.storage.FailNext(backend.Unavailable.Errorf("the cloud is away"))
		_, _ = w.attachments.Reconcile(GinkgoT().Context(), wake.Request(second))
		w.create(first)
		first.Status.Attached = true
		Expect(w.direct.Status().Update(GinkgoT().Context(), first)).To(Succeed())
		w.views.attachments.Client = showingOnly{w, second}

		w.attachOnce(second)

		expectRefused(w, second)
	})
})

// follows is a manager that may lead no more.
func follows() bool { return false }

// attachOnce runs one pass over an attachment.
func (w *world) attachOnce(attachment *storagev1.VolumeAttachment) {
	GinkgoHelper()
	_, err := w.attachments.Reconcile(GinkgoT().Context(), wake.Request(attachment))
	Expect(err).NotTo(HaveOccurred())
}

// expectRefused expects that an attachment has to wait for that to the first node.
func expectRefused(w *world, attachment *storagev1.VolumeAttachment) {
	GinkgoHelper()
	w.get(attachment)
	Expect(attachment.Status.Attached).To(BeFalse())
	Expect(attachment.Status.AttachError).NotTo(BeNil())
	Expect(attachment.Status.AttachError.Message).To(ContainSubstring("is attached to node node-1, and one node at a time can have it (VolumeAttachment"))
}

// createLater creates an attachment in a later second than another.
func createLater(w *world, attachment, than *storagev1.VolumeAttachment) {
	GinkgoHelper()
	fresh := attachment.DeepCopy()
	for w.create(attachment); attachment.CreationTimestamp.Equal(&than.CreationTimestamp); w.create(attachment) {
		w.delete(attachment)
		fresh.DeepCopyInto(attachment)
	}
}

// showingOnly is a cache that has seen one attachment alone.
type showingOnly struct {
	client.Client
	attachment *storagev1.VolumeAttachment
}

func (c showingOnly) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Client.List(ctx, list, options...)
	if attachments, are := list.(*storagev1.VolumeAttachmentList); are {
		attachments.Items = slices.DeleteFunc(attachments.Items, func(each storagev1.VolumeAttachment) bool { return each.UID != c.attachment.UID })
	}
	return err
}

// manager carries out one attachment. Its cache lists attachments as they were when it last wrote to one.
type manager struct {
	*world
	attachment *storagev1.VolumeAttachment
	seen       []storagev1.VolumeAttachment
	// then runs right after the attachment was prepared.
	then func()
}

// attaches runs one pass, without any live list.
func (m *manager) attaches() {
	GinkgoHelper()
	deps := m.dependencies(&view{m, liveView{unlistable{m.reads}}})
	deps.Prepared = attachintent.NewWrites(m.clock, m.isLeader)
	_, err := volumeattachment.New(deps).Reconcile(GinkgoT().Context(), wake.Request(m.attachment))
	Expect(err).NotTo(HaveOccurred())
}

func (m *manager) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	err := m.world.Patch(ctx, object, patch, options...)
	if _, is := object.(*storagev1.VolumeAttachment); is && err == nil {
		seen := &storagev1.VolumeAttachmentList{}
		Expect(m.direct.List(ctx, seen)).To(Succeed())
		m.seen = seen.Items
		if m.then != nil {
			m.then()
		}
	}
	return err
}

func (m *manager) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	attachments, are := list.(*storagev1.VolumeAttachmentList)
	if !are {
		return m.world.List(ctx, list, options...)
	}
	wanted := (&client.ListOptions{}).ApplyOptions(options).FieldSelector.Requirements()[0]
	for i := range m.seen {
		if slices.Contains(indexed(&m.seen[i], wanted.Field), wanted.Value) {
			attachments.Items = append(attachments.Items, m.seen[i])
		}
	}
	return nil
}
