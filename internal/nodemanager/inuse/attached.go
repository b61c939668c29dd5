package inuse

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/internal/volume"
)

// IsAttached reports whether a node's status says that a disk is attached.
func IsAttached(attached []corev1.AttachedVolume, name corev1.UniqueVolumeName) bool {
	return slices.ContainsFunc(attached, func(one corev1.AttachedVolume) bool { return one.Name == name })
}

// NameInStatus is the name that a disk has in a node's status.
func NameInStatus(pv *corev1.PersistentVolume) corev1.UniqueVolumeName {
	return volume.UniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
}

// CheckAttachment makes sure that an attachment is what its name says.
func CheckAttachment(object *storagev1.VolumeAttachment, volume *corev1.PersistentVolume, node string) error {
	source := object.Spec.Source.PersistentVolumeName
	if object.Spec.Attacher != volume.Spec.CSI.Driver || object.Spec.NodeName != node || source == nil || *source != volume.Name {
		return fmt.Errorf("VolumeAttachment %s has the name of volume %s and node %s, and is for another volume, driver or node: delete it",
			object.Name, volume.Name, node)
	}
	return nil
}
