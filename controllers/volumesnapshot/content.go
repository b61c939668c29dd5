package volumesnapshot

import (
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// newContent is the content that is made for a VolumeSnapshot of a volume.
func newContent(snapshot *snapshotv1.VolumeSnapshot, class *snapshotv1.VolumeSnapshotClass, pv *corev1.PersistentVolume) *snapshotv1.VolumeSnapshotContent {
	return &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: snapshots.ContentName(snapshot.UID), Finalizers: []string{snapshots.ContentProtection}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{
				APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: kind.Name,
				Namespace: snapshot.Namespace, Name: snapshot.Name, UID: snapshot.UID, ResourceVersion: snapshot.ResourceVersion,
			},
			Source:         snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &pv.Spec.CSI.VolumeHandle},
			DeletionPolicy: class.DeletionPolicy, Driver: class.Driver, VolumeSnapshotClassName: &class.Name, SourceVolumeMode: pv.Spec.VolumeMode,
		},
	}
}

// contentOf is a content as it is bound.
func contentOf(content *snapshotv1.VolumeSnapshotContent) snapshotbinding.Content {
	spec, says := &content.Spec, ptr.Deref(content.Status, snapshotv1.VolumeSnapshotContentStatus{})
	of := snapshotbinding.Content{
		Object: content, Meta: &content.ObjectMeta, Ref: &spec.VolumeSnapshotRef, Class: &spec.VolumeSnapshotClassName, Policy: &spec.DeletionPolicy,
		HasHandle: spec.Source.SnapshotHandle != nil, HasVolume: spec.Source.VolumeHandle != nil,
		Protection: snapshots.ContentProtection, BeingDeleted: snapshots.BeingDeleted,
		Ready: ptr.Deref(says.ReadyToUse, false), Size: ptr.Deref(says.RestoreSize, 0), Error: says.Error,
	}
	if says.CreationTime != nil {
		of.Created = new(metav1.NewTime(time.Unix(0, *says.CreationTime)))
	}
	return of
}
