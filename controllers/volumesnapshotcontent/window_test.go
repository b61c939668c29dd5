package volumesnapshotcontent

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

func TestTheSnapshotsOfANamespaceInTheirWindowsAreCounted(t *testing.T) {
	content := func(changes ...func(*snapshotv1.VolumeSnapshotContent)) snapshotv1.VolumeSnapshotContent {
		content := snapshotv1.VolumeSnapshotContent{}
		content.Labels = map[string]string{stowagev1alpha1.UndeletableLabel: "uid"}
		content.Spec.DeletionPolicy, content.Spec.VolumeSnapshotRef.Namespace = snapshotv1.VolumeSnapshotContentDelete, "shop"
		for _, change := range changes {
			change(&content)
		}
		return content
	}
	all := []snapshotv1.VolumeSnapshotContent{
		content(), content(),
		content(func(of *snapshotv1.VolumeSnapshotContent) { of.Spec.VolumeSnapshotRef.Namespace = "other" }),
		content(func(of *snapshotv1.VolumeSnapshotContent) { of.Spec.VolumeSnapshotRef.UID = "bound" }),
		content(func(of *snapshotv1.VolumeSnapshotContent) { of.Labels = nil }),
		content(func(of *snapshotv1.VolumeSnapshotContent) { of.DeletionTimestamp = new(metav1.Now()) }),
		content(func(of *snapshotv1.VolumeSnapshotContent) {
			of.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		}),
	}
	if count := inWindows(all, "shop"); count != 2 {
		t.Errorf("%d are counted", count)
	}
}
