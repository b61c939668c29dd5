package controllers

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/snapshots"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A VolumeSnapshotContent of one of Stowage's own drivers", func() {
	for _, scope := range []reconciler.Scope{reconciler.ClusterScope, reconciler.ClassesScope} {
		It("gets a snapshot from the StorageBackend of its volume, which it records, in scope="+string(scope), func() {
			w, _, content := toBeSnapshottedByGCE(scope)

			w.settleSnapshots()

			w.get(content)
			Expect(*content.Status.ReadyToUse).To(BeTrue())
			Expect(content.Labels).To(HaveKeyWithValue(stowagev1alpha1.BackendLabel, "cloud"))
			Expect(content.Annotations).NotTo(HaveKey(snapshots.BeingCreated))
			Expect(w.storage.Snapshots()).To(Equal(map[string]map[string]string{"snapshots/snapshot-u1": {"tier": "cold"}}))
		})
	}

	It("has the StorageBackend recorded before the first call", func() {
		w, _, content := toBeSnapshottedByGCE(reconciler.ClusterScope)
		w.storage.FailNext(backend.Unavailable.Errorf("busy"))

		_ = w.reconcileSnapshots()

		w.get(content)
		Expect(content.Annotations).To(HaveKey(snapshots.BeingCreated))
		Expect(content.Labels).To(HaveKeyWithValue(stowagev1alpha1.BackendLabel, "cloud"))
	})

	It("is deleted from the recorded StorageBackend, though its volume is gone and the driver has two by now", func() {
		w, pv, content := toBeSnapshottedByGCE(reconciler.ClusterScope)
		w.settleSnapshots()
		w.create(secondCloud())
		w.get(pv)
		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
		w.delete(pv)

		w.deleteAsSnapshotController(content)
		w.settleSnapshots()

		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	DescribeTable("that a person made is found in",
		func(change func(*world, *snapshotv1.VolumeSnapshotContent), says string) {
			w, _, content := toBeSnapshottedByGCE(reconciler.ClusterScope)
			w.settleSnapshots()
			w.get(content)
			static := staticContent("static", *content.Status.SnapshotHandle)
			static.Spec.Driver = stowagev1alpha1.GCEDriver
			change(w, static)
			w.create(static)

			w.settleSnapshots()

			w.get(static)
			if says == "" {
				Expect(*static.Status.ReadyToUse).To(BeTrue())
				Expect(static.Labels).To(HaveKeyWithValue(stowagev1alpha1.BackendLabel, "cloud"))
				return
			}
			Expect(*static.Status.Error.Message).To(ContainSubstring(says))
		},
		Entry("the only StorageBackend of the driver", func(*world, *snapshotv1.VolumeSnapshotContent) {}, ""),
		Entry("the StorageBackend that a label names", func(w *world, content *snapshotv1.VolumeSnapshotContent) {
			w.create(secondCloud())
			content.Labels = map[string]string{stowagev1alpha1.BackendLabel: "cloud"}
		}, ""),
		Entry("none of two that both have it, without a label", func(w *world, _ *snapshotv1.VolumeSnapshotContent) { w.create(secondCloud()) },
			"several StorageBackends have the driver gce.stowage.dev: name that of the snapshot in the label stowage.dev/backend"),
		Entry("the one of two that has it", func(w *world, _ *snapshotv1.VolumeSnapshotContent) {
			w.create(secondCloud())
			w.serve(cloudsByName{"cloud": w.storage, "second": fake.New()})
		}, ""),
		Entry("the one of two that made it", func(w *world, _ *snapshotv1.VolumeSnapshotContent) {
			w.create(secondCloud())
			w.serve(cloudsByName{"cloud": making{w.storage}, "second": w.storage})
		}, ""),
		Entry("none of two while one doesn't answer", func(w *world, _ *snapshotv1.VolumeSnapshotContent) {
			w.create(secondCloud())
			silent := fake.New()
			for range 10 {
				silent.FailNext(backend.Unavailable.Errorf("busy"))
			}
			w.serve(cloudsByName{"cloud": w.storage, "second": silent})
		}, "busy"),
		Entry("no StorageBackend that is gone", func(_ *world, content *snapshotv1.VolumeSnapshotContent) {
			content.Labels = map[string]string{stowagev1alpha1.BackendLabel: "absent"}
		}, "StorageBackend absent is gone"),
		Entry("no StorageBackend of another driver", func(w *world, content *snapshotv1.VolumeSnapshotContent) {
			w.create(LocalBackend("disks"))
			content.Labels = map[string]string{stowagev1alpha1.BackendLabel: "disks"}
		}, "StorageBackend disks has the driver local.stowage.dev"),
	)

	It("keeps a deleted StorageBackend until it is gone", func() {
		w, pv, content := toBeSnapshottedByGCE(reconciler.ClusterScope)
		w.settleSnapshots()
		object := cloud()
		w.get(object)
		w.delete(object)
		w.get(pv)
		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
		w.delete(pv)
		w.delete(Claim())
		w.settle()
		w.get(object)
		Expect(meta.FindStatusCondition(object.Status.Conditions, stowagev1alpha1.ReadyCondition).Message).To(ContainSubstring("VolumeSnapshotContent snapcontent-u1"))

		w.deleteAsSnapshotController(content)
		w.settleSnapshots()
		w.settle()

		Expect(w.gone(content)).To(BeTrue())
		Expect(w.gone(object)).To(BeTrue())
	})

	It("is restored to a claim of a class of the driver", func() {
		w, _, content := toBeSnapshottedByGCE(reconciler.ClusterScope)
		snapshot := &snapshotv1.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "snapshot"},
			Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content.Name}},
		}
		w.create(snapshot)
		w.delete(content)
		w.get(content)
		update(w, content, func(content *snapshotv1.VolumeSnapshotContent) { content.Finalizers = nil })
		again := dynamicContent(string(snapshot.UID), *content.Spec.Source.VolumeHandle)
		again.Spec.Driver = stowagev1alpha1.GCEDriver
		w.create(again)
		w.settleSnapshots()
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &again.Name, ReadyToUse: new(true), RestoreSize: new(resource.MustParse("1Gi"))}
		Expect(w.direct.Status().Update(GinkgoT().Context(), snapshot)).To(Succeed())
		claim := Claim(InClass("cloud"), func(claim *corev1.PersistentVolumeClaim) {
			claim.Name = "restored"
			claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new(provisioned.SnapshotGroup), Kind: provisioned.SnapshotKind, Name: "snapshot"}
		})
		w.create(claim)

		w.settle()

		Expect(w.storage.Source(provisioned.VolumeID(claim))).To(HaveValue(Equal(backend.Source{Snapshot: "snapshots/snapshot-" + string(snapshot.UID)})))
	})
})

// toBeSnapshottedByGCE is a cluster with a volume of a cloud, and the content of its snapshot to come.
func toBeSnapshottedByGCE(scope reconciler.Scope) (*world, *corev1.PersistentVolume, *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	w, pv, _ := clouded(scope)
	class, content := snapshotClass(), dynamicContent("u1", pv.Spec.CSI.VolumeHandle)
	class.Driver, content.Spec.Driver = stowagev1alpha1.GCEDriver, stowagev1alpha1.GCEDriver
	w.create(class, content)
	return w, pv, content
}

// cloudsByName serves StorageBackends of clouds with backends of their own.
type cloudsByName map[string]backend.Backend

func (cloudsByName) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.GCEType }
func (k cloudsByName) Open(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	return k[object.Name], nil
}

// making is a backend that made all of its snapshots.
type making struct{ *fake.Backend }

func (m making) FindSnapshot(ctx context.Context, handle string) (*backend.Snapshot, error) {
	found, err := m.Backend.FindSnapshot(ctx, handle)
	if err == nil {
		found.Made = true
	}
	return found, err
}

func secondCloud() *stowagev1alpha1.StorageBackend {
	second := cloud()
	second.Name = "second"
	return second
}
