package volumegroupsnapshot

import (
	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// newContent is the content that is made for a VolumeGroupSnapshot of volumes. All must be of the class's driver: another one
// may have a volume with the same handle.
func newContent(group *groupsnapshotv1.VolumeGroupSnapshot, class *snapshotv1.VolumeSnapshotClass, volumes []*corev1.PersistentVolume) (*groupsnapshotv1.VolumeGroupSnapshotContent, error) {
	var handles []string
	for _, pv := range volumes {
		if pv.Spec.CSI.Driver != class.Driver {
			return nil, snapshots.NewProblem(kind.Reasons.CreationFailed,
				"VolumeGroupSnapshotClass %s is of driver %.200q, and volume %s of %.200q: select claims of that driver alone", class.Name, class.Driver, pv.Name, pv.Spec.CSI.Driver)
		}
		handles = append(handles, pv.Spec.CSI.VolumeHandle)
	}
	content := &groupsnapshotv1.VolumeGroupSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: snapshots.GroupContentName(group.UID), Finalizers: []string{snapshots.GroupContentProtection}},
		Spec: groupsnapshotv1.VolumeGroupSnapshotContentSpec{
			VolumeGroupSnapshotRef: corev1.ObjectReference{
				APIVersion: groupsnapshotv1.SchemeGroupVersion.String(), Kind: kind.Name,
				Namespace: group.Namespace, Name: group.Name, UID: group.UID, ResourceVersion: group.ResourceVersion,
			},
			Source:         groupsnapshotv1.VolumeGroupSnapshotContentSource{VolumeHandles: handles},
			DeletionPolicy: class.DeletionPolicy, Driver: class.Driver, VolumeGroupSnapshotClassName: &class.Name,
		},
	}
	return content, nil
}

// contentOf is a content as it is bound.
func contentOf(content *groupsnapshotv1.VolumeGroupSnapshotContent) snapshotbinding.Content {
	spec, says := &content.Spec, ptr.Deref(content.Status, groupsnapshotv1.VolumeGroupSnapshotContentStatus{})
	return snapshotbinding.Content{
		Object: content, Meta: &content.ObjectMeta, Ref: &spec.VolumeGroupSnapshotRef, Class: &spec.VolumeGroupSnapshotClassName, Policy: &spec.DeletionPolicy,
		HasHandle: spec.Source.GroupSnapshotHandles != nil, HasVolume: len(spec.Source.VolumeHandles) > 0,
		Protection: snapshots.GroupContentProtection, BeingDeleted: snapshots.GroupBeingDeleted,
		Ready: ptr.Deref(says.ReadyToUse, false), Created: says.CreationTime, Error: says.Error,
	}
}

// bindable is a VolumeGroupSnapshot as it is bound. It gets a status, in memory.
func bindable(group *groupsnapshotv1.VolumeGroupSnapshot) snapshotbinding.Snapshot {
	if group.Status == nil {
		group.Status = &groupsnapshotv1.VolumeGroupSnapshotStatus{}
	}
	status := group.Status
	return snapshotbinding.Snapshot{
		Object: group, Class: &group.Spec.VolumeGroupSnapshotClassName, Given: group.Spec.Source.VolumeGroupSnapshotContentName, Made: snapshots.GroupContentName(group.UID),
		Bound: &status.BoundVolumeGroupSnapshotContentName, Ready: &status.ReadyToUse, Created: &status.CreationTime, Error: &status.Error,
	}
}

// isStatic reports whether a VolumeGroupSnapshot names a content that a person made.
func isStatic(group *groupsnapshotv1.VolumeGroupSnapshot) bool {
	return group.Spec.Source.VolumeGroupSnapshotContentName != nil
}

// boundContent is the name of the content in a status; "" for none.
func boundContent(group *groupsnapshotv1.VolumeGroupSnapshot) string {
	if group.Status == nil {
		return ""
	}
	return ptr.Deref(group.Status.BoundVolumeGroupSnapshotContentName, "")
}
