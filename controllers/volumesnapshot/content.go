package volumesnapshot

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// newContent is the content that is made for a VolumeSnapshot of a volume.
func newContent(snapshot *snapshotv1.VolumeSnapshot, class *snapshotv1.VolumeSnapshotClass, pv *corev1.PersistentVolume) (*snapshotv1.VolumeSnapshotContent, error) {
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: snapshots.ContentName(snapshot.UID), Finalizers: []string{snapshots.ContentProtection}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{
				APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshot",
				Namespace: snapshot.Namespace, Name: snapshot.Name, UID: snapshot.UID, ResourceVersion: snapshot.ResourceVersion,
			},
			Source:         snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &pv.Spec.CSI.VolumeHandle},
			DeletionPolicy: class.DeletionPolicy, Driver: class.Driver, VolumeSnapshotClassName: &class.Name, SourceVolumeMode: pv.Spec.VolumeMode,
		},
	}
	return content, nameSecret(content, class)
}

// bindable is a content as it is tied and ended.
func bindable(content *snapshotv1.VolumeSnapshotContent) snapshotbinding.Content {
	spec := &content.Spec
	return snapshotbinding.Content{
		Object: content, UID: &spec.VolumeSnapshotRef.UID, Class: &spec.VolumeSnapshotClassName, Policy: &spec.DeletionPolicy,
		Protection: snapshots.ContentProtection, BeingDeleted: snapshots.BeingDeleted,
	}
}

// nameSecret records on a content which Secret deletes its snapshot: the class may be gone by then.
func nameSecret(content *snapshotv1.VolumeSnapshotContent, class *snapshotv1.VolumeSnapshotClass) error {
	of := snapshots.Class{Kind: "VolumeSnapshotClass", Name: class.Name, Parameters: class.Parameters}
	secret, err := snapshots.DeletionSecret(of, "snapshotter", "volumesnapshot", content.Name, content.Spec.VolumeSnapshotRef)
	if err != nil {
		return snapshots.NewProblem(event.SnapshotContentCreationFailed, "%v", err)
	}
	if secret.Name != "" {
		metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.DeletionSecretName, secret.Name)
		metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.DeletionSecretNamespace, secret.Namespace)
	}
	return nil
}
