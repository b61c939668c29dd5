package integration_test

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// velero plays the API calls that Velero makes of snapshots, without moving their data: its own actions of backups, restores and
// deletions of backups.
type velero struct{}

// backUp makes a snapshot, remembers its content, and removes both objects. The snapshot stays in the storage.
func (velero) backUp(ctx context.Context, claim *corev1.PersistentVolumeClaim) *snapshotv1.VolumeSnapshotContent {
	GinkgoHelper()
	snapshot, content := snapshotted(ctx, claim)
	Eventually(isReady).WithArguments(ctx, content).WithTimeout(soon).Should(BeTrue())
	kept := content.DeepCopy()
	setPolicy(ctx, content, snapshotv1.VolumeSnapshotContentRetain)
	Expect(users.Delete(ctx, content)).To(Succeed())
	Expect(users.Delete(ctx, snapshot)).To(Succeed())
	eventuallyNotFound(ctx, snapshot, content)
	return kept
}

// expose makes a content and a VolumeSnapshot of what was backed up, and a claim from them, in the claim's namespace. A restore leaves
// the first two, with policy Retain. The data mover has all three in its own namespace.
func (v velero) expose(
	ctx context.Context, backup *snapshotv1.VolumeSnapshotContent, claim *corev1.PersistentVolumeClaim, policy snapshotv1.DeletionPolicy,
) (*snapshotv1.VolumeSnapshot, *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	const name = "of-backup"
	content := v.contentOf(backup, name, corev1.ObjectReference{Namespace: claim.Namespace, Name: name})
	content.Spec.DeletionPolicy = policy
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: name},
		Spec: snapshotv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: backup.Spec.VolumeSnapshotClassName, Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: new(name)},
		},
	}
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new(provisioned.SnapshotGroup), Kind: provisioned.SnapshotKind, Name: name}
	create(ctx, content, snapshot, claim)
	bound(ctx, claim)
	return snapshot, content
}

// deleteBackup makes a content that is for no VolumeSnapshot, with the finalizers of the backup's, and deletes it.
func (v velero) deleteBackup(ctx context.Context, backup *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	content := v.contentOf(backup, "to-delete", corev1.ObjectReference{Namespace: "ns-of-none", Name: "name-of-none"})
	content.Finalizers, content.Spec.VolumeSnapshotClassName = backup.Finalizers, nil
	content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentDelete
	create(ctx, content)
	Eventually(isReady).WithArguments(ctx, content).WithTimeout(soon).Should(BeTrue())
	Expect(users.Delete(ctx, content)).To(Succeed())
	eventuallyNotFound(ctx, content)
}

// contentOf is a content with the snapshot of a backup, for another VolumeSnapshot.
func (velero) contentOf(backup *snapshotv1.VolumeSnapshotContent, name string, of corev1.ObjectReference) *snapshotv1.VolumeSnapshotContent {
	return &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: backup.Labels, Annotations: backup.Annotations},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: of, Driver: backup.Spec.Driver, VolumeSnapshotClassName: backup.Spec.VolumeSnapshotClassName,
			Source: snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: backup.Status.SnapshotHandle}, SourceVolumeMode: backup.Spec.SourceVolumeMode,
		},
	}
}

func setPolicy(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, policy snapshotv1.DeletionPolicy) {
	GinkgoHelper()
	before := content.DeepCopy()
	content.Spec.DeletionPolicy = policy
	Expect(users.Patch(ctx, content, client.MergeFrom(before))).To(Succeed())
}

// snapshotVolumes are the NodeVolumes of snapshots.
func snapshotVolumes(ctx context.Context) (names []string, err error) {
	volumes := &stowagev1alpha1.NodeVolumeList{}
	err = users.List(ctx, volumes)
	for _, each := range volumes.Items {
		if each.Spec.SnapshotUID != "" {
			names = append(names, each.Name)
		}
	}
	return names, err
}
