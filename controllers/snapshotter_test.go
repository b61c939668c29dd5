package controllers

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/volumesnapshotcontent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

var _ = Describe("A VolumeSnapshotContent of a driver that csi-snapshotter serves", func() {
	It("is left alone", func() {
		w, _, content := toBeSnapshottedByGCE(reconciler.ClassesScope)
		w.handToSnapshotter()
		w.get(content)
		before := content.DeepCopy()

		w.settleSnapshots()

		w.get(content)
		Expect(content).To(Equal(before))
		Expect(w.storage.Snapshots()).To(BeEmpty())

		By("keeping the snapshot of a deleted one for csi-snapshotter, too, though it has a label")
		handle := w.snapshotOfCall(content)
		update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
			content.Labels = map[string]string{stowagev1alpha1.BackendLabel: "cloud"}
		})
		w.deleteAsSnapshotController(content)
		w.settleSnapshots()
		Expect(w.storage.Snapshots()).To(HaveKey(handle))
	})

	It("that Stowage has begun is made, and deleted, by Stowage", func() {
		w, _, content := toBeSnapshottedByGCE(reconciler.ClassesScope)
		w.storage.FailNext(backend.Unavailable.Errorf("busy"))
		_ = w.reconcileSnapshots()
		w.handToSnapshotter()

		w.settleSnapshots()

		w.get(content)
		Expect(*content.Status.SnapshotHandle).To(Equal("snapshots/snapshot-u1"))
		w.deleteAsSnapshotController(content)
		w.settleSnapshots()
		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("goes back to Stowage, which takes the snapshot as it is, and deletes it", func() {
		w, _, content := toBeSnapshottedByGCE(reconciler.ClassesScope)
		handle := w.snapshotOfCall(content)

		w.settleSnapshots()

		w.get(content)
		Expect(*content.Status.ReadyToUse).To(BeTrue())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
		Expect(*content.Status.SnapshotHandle).To(Equal(handle))
		w.deleteAsSnapshotController(content)
		w.settleSnapshots()
		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})
})

// handToSnapshotter has the manager leave the contents of a driver to csi-snapshotter.
func (w *world) handToSnapshotter() {
	deps := w.dependencies(w.views.snapshots)
	deps.CSISnapshotter = []string{stowagev1alpha1.GCEDriver}
	w.snapshots = volumesnapshotcontent.New(deps)
}

// snapshotOfCall makes the snapshot of a content as a call of a CSI socket does, and records it as csi-snapshotter does.
func (w *world) snapshotOfCall(content *snapshotv1.VolumeSnapshotContent) (handle string) {
	GinkgoHelper()
	owner := named.UID("", "cloud", "snapshot", "snapshot-u1")
	made, err := w.storage.CreateSnapshot(context.Background(), backend.SnapshotRequest{
		ID: backend.SnapshotID(owner), Owner: owner, Volume: *content.Spec.Source.VolumeHandle,
	})
	Expect(err).NotTo(HaveOccurred())
	w.get(content)
	content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &made.Handle, ReadyToUse: new(false)}
	Expect(w.direct.Status().Update(context.Background(), content)).To(Succeed())
	return made.Handle
}
