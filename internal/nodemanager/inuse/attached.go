package inuse

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/volume"
)

// IsAttached reports whether a disk is in a node's volumesAttached.
func IsAttached(attached []corev1.AttachedVolume, name corev1.UniqueVolumeName) bool {
	return slices.ContainsFunc(attached, func(one corev1.AttachedVolume) bool { return one.Name == name })
}

// NameInStatus is the name of a disk in a node's status.
func NameInStatus(pv *corev1.PersistentVolume) corev1.UniqueVolumeName {
	return volume.UniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
}

// FindAttachment reads the VolumeAttachment of a volume to a node; nil if there is none yet. It is
// an error if the object of that name is for another volume, driver or node.
func FindAttachment(ctx context.Context, live client.Reader, pv *corev1.PersistentVolume, node string) (*storagev1.VolumeAttachment, error) {
	object, name := &storagev1.VolumeAttachment{}, volume.AttachmentName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle, node)
	err := live.Get(ctx, client.ObjectKey{Name: name}, object)
	// Forbidden: the authorizer learns a moment later which node an attachment is for.
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading how volume %s is attached: %w", pv.Name, err)
	}
	source := object.Spec.Source.PersistentVolumeName
	if object.Spec.Attacher != pv.Spec.CSI.Driver || object.Spec.NodeName != node || source == nil || *source != pv.Name {
		return nil, fmt.Errorf("VolumeAttachment %s has the name of volume %s and node %s, and is for another volume, driver or node: delete it",
			object.Name, pv.Name, node)
	}
	return object, nil
}
