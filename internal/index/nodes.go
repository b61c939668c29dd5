package index

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/volume"
)

// NodeOfIndexedPod returns the name of a pod's node. It is empty if the pod has no node.
func NodeOfIndexedPod(object client.Object) []string {
	return []string{object.(*corev1.Pod).Spec.NodeName}
}

// InlineVolumesOf returns the kubelet's names of a pod's inline volumes.
func InlineVolumesOf(object client.Object) []string {
	pod := object.(*corev1.Pod)
	var names []string
	for i := range pod.Spec.Volumes {
		if !attach.IsInline(&pod.Spec.Volumes[i]) {
			continue
		}
		if volume, attachable, err := attach.OfInline(&pod.Spec.Volumes[i], pod.Namespace); err == nil && attachable {
			names = append(names, string(volume.Name))
		}
	}
	return names
}

// VolumesAttachedTo returns the names in a node's volumesAttached.
func VolumesAttachedTo(object client.Object) []string {
	volumes := object.(*corev1.Node).Status.VolumesAttached
	names := make([]string, 0, len(volumes))
	for _, attached := range volumes {
		names = append(names, string(attached.Name))
	}
	return names
}

// AttachmentStorage returns the index value of an attachment: the name of its
// PersistentVolume, or the kubelet's name of an inline volume.
func AttachmentStorage(object client.Object) []string {
	source := object.(*storagev1.VolumeAttachment).Spec.Source
	switch {
	case source.PersistentVolumeName != nil:
		return []string{*source.PersistentVolumeName}
	case source.InlineVolumeSpec != nil && source.InlineVolumeSpec.CSI != nil:
		return []string{string(volume.UniqueName(source.InlineVolumeSpec.CSI.Driver, source.InlineVolumeSpec.CSI.VolumeHandle))}
	default:
		return nil
	}
}

// AttachmentVolume returns the name of an attachment's PersistentVolume.
func AttachmentVolume(object client.Object) []string {
	if name := object.(*storagev1.VolumeAttachment).Spec.Source.PersistentVolumeName; name != nil {
		return []string{*name}
	}
	return nil
}

// AttachmentNode returns the name of an attachment's node.
func AttachmentNode(object client.Object) []string {
	return []string{object.(*storagev1.VolumeAttachment).Spec.NodeName}
}

// NodeOfNodeVolume returns the node of a NodeVolume.
func NodeOfNodeVolume(object client.Object) []string {
	return []string{object.(*stowagev1alpha1.NodeVolume).Spec.NodeName}
}

// DiskOfCapacity returns the disk of a CSIStorageCapacity that Stowage published.
func DiskOfCapacity(object client.Object) []string {
	if object.GetLabels()[stowagev1alpha1.BackendLabel] == "" {
		return nil
	}
	at := strings.LastIndex(object.GetName(), ".")
	return []string{object.GetName()[:max(0, at)]}
}
