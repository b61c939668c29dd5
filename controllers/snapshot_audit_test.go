package controllers

import (
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
)

// snapshotHandle is that of the snapshot of toBeSnapshottedByGCE.
const snapshotHandle = "snapshots/snapshot-u1"

var _ = Describe("An audit of a backend with a snapshot", func() {
	It("finds nothing amiss where a content has its snapshotHandle", func() {
		w, _ := snapshottedByGCE()

		w.auditClouds()

		Expect(w.cloud().Status.Orphans).To(HaveValue(BeZero()))
	})

	It("finds nothing amiss while the handle isn't recorded yet", func() {
		w, pv, _ := toBeSnapshottedByGCE(reconciler.ClusterScope)
		_, err := w.storage.CreateSnapshot(w.logging(), backend.SnapshotRequest{
			ID: backend.SnapshotID("u1"), Owner: "u1", Namespace: "default", Volume: pv.Spec.CSI.VolumeHandle,
		})
		Expect(err).NotTo(HaveOccurred())

		w.auditClouds()

		Expect(w.cloud().Status.Orphans).To(HaveValue(BeZero()))
	})

	It("finds it once its content was deleted past its finalizer", func() {
		w, content := snapshottedByGCE()
		w.forceDelete(content)

		w.auditClouds()

		Expect(w.cloud().Status.Orphans).To(HaveValue(BeEquivalentTo(1)))
		Expect(w.cloud().Status.Audit.Orphans).To(ConsistOf(And(HaveField("ID", snapshotHandle), HaveField("SnapshotUID", types.UID("u1")))))
		Expect(eventsWith(w.newEvents(), "OrphansFound")).To(ConsistOf(ContainSubstring(snapshotHandle)))
	})

	It("finds it where only a content of another driver has its snapshotHandle", func() {
		w, content := snapshottedByGCE()
		w.forceDelete(content)
		w.create(staticContent("static", snapshotHandle))

		w.auditClouds()

		Expect(w.cloud().Status.Orphans).To(HaveValue(BeEquivalentTo(1)))
	})

	It("finds nothing amiss once a person gave it a content again", func() {
		w, content := snapshottedByGCE()
		w.forceDelete(content)
		static := staticContent("static", snapshotHandle)
		static.Spec.Driver = stowagev1alpha1.GCEDriver
		w.create(static)

		w.auditClouds()

		Expect(w.cloud().Status.Orphans).To(HaveValue(BeZero()))
	})

	It("never removes it", func() {
		w, content := snapshottedByGCE()
		w.forceDelete(content)
		update(w, cloud(), func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Audit.RemoveOrphansAfter = &metav1.Duration{Duration: time.Hour}
		})

		for range 3 {
			w.auditClouds()
		}

		Expect(w.storage.Snapshots()).To(HaveKey(snapshotHandle))
		Expect(w.cloud().Status.Audit.Orphans).To(ConsistOf(HaveField("Removing", false)))
	})

	It("counts it as retained, once its content went with policy Retain", func() {
		w, content := snapshottedByGCE()
		w.retainAsSnapshotController(content)

		w.settleSnapshots()
		w.auditClouds()

		Expect(w.gone(content)).To(BeTrue())
		Expect(w.cloud().Status.Orphans).To(HaveValue(BeZero()))
		Expect(w.cloud().Status.Audit.Retained).To(BeEquivalentTo(1))
	})
})

var _ = Describe("A VolumeSnapshotContent with policy Retain", func() {
	It("stays until its storage bears a note, and says why", func() {
		w, content := snapshottedByGCE()
		w.retainAsSnapshotController(content)
		w.storage.FailNext(backend.Unavailable.Errorf("busy"))

		Expect(w.reconcileSnapshots()).To(MatchError(ContainSubstring("busy")))

		Expect(w.gone(content)).To(BeFalse())
		Expect(eventsWith(w.newEvents(), "SnapshotDeleteError")).To(ConsistOf(ContainSubstring("the content is kept until its storage bears a note")))
		w.settleSnapshots()
		Expect(w.gone(content)).To(BeTrue())
	})

	DescribeTable("goes, though its storage bears no note, as there is", func(change func(*world, *snapshotv1.VolumeSnapshotContent)) {
		w, content := snapshottedByGCE()
		change(w, content)
		w.retainAsSnapshotController(content)

		w.settleSnapshots()

		Expect(w.gone(content)).To(BeTrue())
	},
		Entry("no snapshot", func(w *world, _ *snapshotv1.VolumeSnapshotContent) {
			Expect(w.storage.DeleteSnapshot(w.logging(), snapshotHandle)).To(Succeed())
		}),
		Entry("no StorageBackend", func(w *world, _ *snapshotv1.VolumeSnapshotContent) { w.forceDelete(cloud()) }),
	)
})

// snapshottedByGCE is a cluster with a snapshot of a volume of a cloud.
func snapshottedByGCE() (*world, *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	w, _, content := toBeSnapshottedByGCE(reconciler.ClusterScope)
	w.settleSnapshots()
	w.get(content)
	Expect(content.Status.SnapshotHandle).To(Equal(ptr.To(snapshotHandle)))
	return w, content
}

// auditClouds has an hour pass, and the StorageBackends audited.
func (w *world) auditClouds() {
	GinkgoHelper()
	w.passTime(time.Hour)
	w.settle()
}

// cloud is the StorageBackend cloud as it is now.
func (w *world) cloud() *stowagev1alpha1.StorageBackend {
	GinkgoHelper()
	object := cloud()
	w.get(object)
	return object
}

// retainAsSnapshotController deletes a content, whose policy is Retain by then.
func (w *world) retainAsSnapshotController(content *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
		content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
	})
	w.deleteAsSnapshotController(content)
}
