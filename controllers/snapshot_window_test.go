package controllers

import (
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
)

var _ = Describe("The snapshot of a deleted VolumeSnapshot", func() {
	It("is kept by another content until the end of the undelete window", func() {
		w, content := snapshotted()
		w.keepSnapshotsFor(72 * time.Hour)
		w.deleteAsSnapshotController(content)

		w.settleSnapshots()

		Expect(w.gone(content)).To(BeTrue())
		next := w.undeletable(content)
		Expect(next.Labels).To(HaveKey(stowagev1alpha1.UndeletableLabel))
		Expect(next.Spec.VolumeSnapshotRef.Namespace + "/" + next.Spec.VolumeSnapshotRef.Name).To(Equal("default/snapshot"))
		Expect(next.Spec.VolumeSnapshotRef.UID).To(BeEmpty())
		Expect(next.Spec.DeletionPolicy).To(Equal(snapshotv1.VolumeSnapshotContentDelete))
		Expect(next.Spec.SourceVolumeMode).To(Equal(content.Spec.SourceVolumeMode))
		Expect(next.Status).To(Equal(content.Status))
		Expect(w.storage.Calls()).NotTo(ContainElement(HavePrefix("FindSnapshot")))
		until := next.CreationTimestamp.Add(72 * time.Hour).UTC().Format(time.RFC3339)
		Expect(w.newEvents()).To(ContainElement(And(HavePrefix("Normal UndeleteWindowBegan"), ContainSubstring(next.Name+" until "+until))))

		w.passTime(71 * time.Hour)
		w.settleSnapshots()
		Expect(w.storage.Snapshots()).To(HaveLen(1))
		w.passTime(2 * time.Hour)
		w.settleSnapshots()
		Expect(w.gone(next)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	DescribeTable("is neither lost nor leaked at a crash",
		func(of fault) {
			for number := range 5 {
				w, content := snapshotted()
				w.keepSnapshotsFor(72 * time.Hour)
				w.deleteAsSnapshotController(content)
				w.faults = map[int]fault{w.written + number: of}
				w.settleSnapshotsAfterCrashes()
				Expect(w.gone(content)).To(BeTrue(), "write %d", number)
				Expect(w.storage.Snapshots()).To(HaveLen(1), "write %d", number)
				next := w.undeletable(content)

				w.passTime(73 * time.Hour)
				w.faults = map[int]fault{w.written + number: of}
				w.settleSnapshotsAfterCrashes()
				Expect(w.gone(next)).To(BeTrue(), "write %d", number)
				Expect(w.storage.Snapshots()).To(BeEmpty())
				w.empty()
			}
		},
		Entry("before a write", lost), Entry("after a write", unanswered), Entry("while another writes", contended),
	)

	It("is a VolumeSnapshot's again that is bound to the content", func() {
		w, next := inWindow()
		w.bindAsSnapshotController(next)

		w.passTime(100 * time.Hour)
		w.settleSnapshots()

		w.get(next)
		Expect(next.Labels).NotTo(HaveKey(stowagev1alpha1.UndeletableLabel))
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("of one of Stowage's own drivers is kept, too, beside the stock snapshot-controller", func() {
		w, _, content := toBeSnapshottedByGCE(reconciler.ClassesScope)
		w.settleSnapshots()
		w.get(content)
		retain := func(window time.Duration) {
			object := cloud()
			update(w, object, func(object *stowagev1alpha1.StorageBackend) {
				object.Spec.Deletion.RetainSnapshotsFor.Duration = window
			})
		}
		retain(72 * time.Hour)
		w.deleteAsSnapshotController(content)

		w.settleSnapshots()

		next := w.undeletable(content)
		Expect(next.Labels).To(HaveKeyWithValue(stowagev1alpha1.BackendLabel, cloud().Name))
		Expect(*next.Status.ReadyToUse).To(BeTrue())

		retain(0)
		w.passTime(time.Minute)
		w.settleSnapshots()
		Expect(w.gone(next)).To(BeTrue())
		Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty())
	})

	It("comes back as a VolumeSnapshot that Stowage binds", func() {
		w, _, snapshot := bound()
		content := contentOf(w, snapshot)
		w.keepSnapshotsFor(72 * time.Hour)
		w.delete(snapshot)
		w.settleBinding()
		Expect(w.gone(snapshot)).To(BeTrue())

		again := staticSnapshot(snapshot.Name, w.undeletable(content).Name)
		w.create(again)
		w.settleBinding()

		expectReady(w, again)
		Expect(w.undeletable(content).Labels).NotTo(HaveKey(stowagev1alpha1.UndeletableLabel))
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("has a window again when that VolumeSnapshot is deleted, too", func() {
		w, next := inWindow()
		w.bindAsSnapshotController(next)
		w.settleSnapshots()
		w.deleteAsSnapshotController(next)

		w.settleSnapshots()

		Expect(w.gone(next)).To(BeTrue())
		Expect(*w.undeletable(next).Status.ReadyToUse).To(BeTrue())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("stays if a VolumeSnapshot is bound just before the window ends", func() {
		w, next := inWindow()
		w.passTime(73 * time.Hour)
		w.views.snapshots.live = liveView{oldState[*snapshotv1.VolumeSnapshotContent]{w, next.DeepCopy()}}
		w.bindAsSnapshotController(next)

		_, err := w.snapshots.Reconcile(w.logging(), wake.Request(next))

		Expect(err).NotTo(HaveOccurred())
		Expect(w.gone(next)).To(BeFalse())
		w.get(next)
		Expect(next.DeletionTimestamp).To(BeNil())
	})

	It("stays as long as the StorageBackend says now, whatever the cache shows", func() {
		w, next := inWindow()
		before := csiBackend()
		w.get(before)
		w.keepSnapshotsFor(200 * time.Hour)
		w.views.snapshots.Client = oldState[*stowagev1alpha1.StorageBackend]{w, before}
		w.passTime(100 * time.Hour)

		w.settleSnapshots()

		Expect(w.gone(next)).To(BeFalse())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("stays without its StorageBackend", func() {
		w, next := inWindow()
		object := csiBackend()
		update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Finalizers = nil })
		w.delete(object)
		w.passTime(100 * time.Hour)

		w.settleSnapshots()

		Expect(w.gone(next)).To(BeFalse())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("goes at once with the content", func() {
		w, next := inWindow()
		w.delete(next)

		w.settleSnapshots()

		Expect(w.gone(next)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("goes at once when there is no window any more", func() {
		w, next := inWindow()
		w.keepSnapshotsFor(0)
		w.passTime(time.Minute)

		w.settleSnapshots()

		Expect(w.gone(next)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("stays for good with the policy Retain, set within the window", func() {
		w, next := inWindow()
		update(w, next, func(next *snapshotv1.VolumeSnapshotContent) {
			next.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		})
		w.passTime(100 * time.Hour)

		w.settleSnapshots()

		w.get(next)
		Expect(next.DeletionTimestamp).To(BeNil())
		Expect(next.Labels).NotTo(HaveKey(stowagev1alpha1.UndeletableLabel))
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("stays if its window is one of another StorageBackend of the name", func() {
		w, next := inWindow()
		update(w, next, func(next *snapshotv1.VolumeSnapshotContent) {
			next.Labels[stowagev1alpha1.UndeletableLabel] = "b7c3f1de-another"
		})
		w.keepSnapshotsFor(0)
		w.passTime(100 * time.Hour)

		w.settleSnapshots()

		w.get(next)
		Expect(next.DeletionTimestamp).To(BeNil())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("one of another StorageBackend than " + csiDriver)))
	})

	It("keeps its StorageBackend", func() {
		w, next := inWindow()
		object := csiBackend()
		w.delete(object)

		w.settle()

		w.get(object)
		ready := meta.FindStatusCondition(object.Status.Conditions, stowagev1alpha1.ReadyCondition)
		Expect(ready.Message).To(ContainSubstring("waits for VolumeSnapshotContent " + next.Name + ", in its undelete window"))
	})

	It("has the window that the StorageBackend has now, whatever the cache shows", func() {
		w, content := snapshotted()
		before := csiBackend()
		w.get(before)
		w.keepSnapshotsFor(72 * time.Hour)
		w.views.snapshots.Client = oldState[*stowagev1alpha1.StorageBackend]{w, before}
		w.deleteAsSnapshotController(content)

		w.settleSnapshots()

		w.undeletable(content)
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("has no window if it was never complete", func() {
		w, content := toBeSnapshotted()
		w.keepSnapshotsFor(72 * time.Hour)
		w.storage.SetUploading(true)
		w.settleSnapshots()
		Expect(w.storage.Snapshots()).To(HaveLen(1))
		w.deleteAsSnapshotController(content)

		w.settleSnapshots()

		Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("has no window once its deletion began", func() {
		w, content := snapshotted()
		w.deleteAsSnapshotController(content)
		w.storage.FailNext(backend.Unavailable.Errorf("busy"))
		_ = w.reconcileSnapshots()
		w.keepSnapshotsFor(72 * time.Hour)

		w.settleSnapshots()

		Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("goes though a VolumeSnapshot is bound while it is deleted", func() {
		w, next := inWindow()
		w.delete(next)
		w.storage.FailNext(backend.Unavailable.Errorf("busy"))
		_ = w.reconcileSnapshots()
		w.bindAsSnapshotController(next)

		w.settleSnapshots()

		Expect(w.gone(next)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("with the policy Retain needs no window", func() {
		w, content := snapshotted()
		w.keepSnapshotsFor(72 * time.Hour)
		update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		})
		w.deleteAsSnapshotController(content)

		w.settleSnapshots()

		Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("that never was leaves no content", func() {
		w, content := toBeSnapshotted()
		w.keepSnapshotsFor(72 * time.Hour)
		w.storage.FailNext(backend.Invalid.Errorf("such a volume has no snapshots"))
		_ = w.reconcileSnapshots()
		w.deleteAsSnapshotController(content)

		w.settleSnapshots()

		Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty())
	})
})

// inWindow is a cluster with a snapshot whose undelete window of 72 hours has just begun.
func inWindow() (*world, *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	w, content := snapshotted()
	w.keepSnapshotsFor(72 * time.Hour)
	w.deleteAsSnapshotController(content)
	w.settleSnapshots()
	next := w.undeletable(content)
	return w, next
}

func (w *world) keepSnapshotsFor(window time.Duration) {
	GinkgoHelper()
	object := csiBackend()
	update(w, object, func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Deletion.RetainSnapshotsFor.Duration = window
	})
}

// undeletable is the content that has the snapshot of a deleted one.
func (w *world) undeletable(deleted *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotContent {
	GinkgoHelper()
	content := &snapshotv1.VolumeSnapshotContent{}
	content.Name = snapshots.UndeletableName(deleted.UID)
	w.get(content)
	return content
}

// bindAsSnapshotController binds a VolumeSnapshot that a person made to the content that it names.
func (w *world) bindAsSnapshotController(content *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
		content.Spec.VolumeSnapshotRef.UID = types.UID("of-" + strings.TrimPrefix(content.Name, "undeletable-"))
	})
}
