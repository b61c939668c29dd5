package attach

import (
	"cmp"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Attachment is a VolumeAttachment, and the volume that it is of.
type Attachment struct {
	Object *storagev1.VolumeAttachment
	// Foreign says that it is none of ours to delete: it has another name than a node
	// waits for, or attaches what the pods of a node can't want.
	Foreign bool
	// Volume has no Name where nobody can tell it any more: the volume object is gone,
	// and the node neither uses nor was told of a volume that it could be.
	Volume Volume
}

// OfAttachment finds out what a VolumeAttachment is of. Its volume object and its node
// are nil where they are gone.
func OfAttachment(object *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, node *corev1.Node) Attachment {
	source := object.Spec.Source
	switch {
	case source.InlineVolumeSpec != nil:
		return ofInlineSpec(object, source.InlineVolumeSpec)
	case source.PersistentVolumeName == nil || !hasHashedName(object):
		return Attachment{Object: object, Foreign: true}
	case pv != nil:
		volume, attachable, err := OfPersistentVolume(pv)
		if err == nil && attachable && isOf(object, volume) {
			return Attachment{Object: object, Volume: volume}
		}
	}
	if IsExisting(pv) && node != nil && object.Spec.Attacher == stowagev1alpha1.GCEDriver {
		if volume, _, err := OfExisting(pv, node); err == nil && isOf(object, volume) {
			return Attachment{Object: object, Volume: volume}
		}
	}
	// The volume object is gone, or is another one of the same name by now.
	volume := Volume{Driver: object.Spec.Attacher, Source: source}
	if node != nil {
		volume.Name, volume.Handle = nameAmong(node, object)
	}
	return Attachment{Object: object, Volume: volume}
}

// ofInlineSpec knows what pods name themselves, and Kubernetes once attached.
func ofInlineSpec(object *storagev1.VolumeAttachment, spec *corev1.PersistentVolumeSpec) Attachment {
	if spec.CSI == nil || !translator.IsMigratedCSIDriverByName(spec.CSI.Driver) {
		return Attachment{Object: object, Foreign: true}
	}
	volume := ofCSI(&corev1.PersistentVolume{Spec: *spec}, spec.CSI)
	volume.Source = object.Spec.Source
	return Attachment{Object: object, Volume: volume, Foreign: !isOf(object, volume)}
}

// isOf tells whether an attachment is one of a volume.
func isOf(object *storagev1.VolumeAttachment, volume Volume) bool {
	return object.Spec.Attacher == volume.Driver && object.Name == volume.AttachmentName(object.Spec.NodeName)
}

// hasHashedName tells whether an attachment is named as those of a controller of nodes
// are.
func hasHashedName(object *storagev1.VolumeAttachment) bool {
	hash, named := strings.CutPrefix(object.Name, volume.AttachmentPrefix)
	decoded, err := hex.DecodeString(hash)
	return named && err == nil && len(decoded) == 32
}

// nameAmong finds the volume that an attachment is of among those that its node
// knows of.
func nameAmong(node *corev1.Node, object *storagev1.VolumeAttachment) (name corev1.UniqueVolumeName, handle string) {
	for _, name := range namesIn(node) {
		driver, handle, is := volume.ParseUniqueName(name)
		if is && isOf(object, Volume{Driver: driver, Handle: handle}) {
			return name, handle
		}
	}
	return "", ""
}

func namesIn(node *corev1.Node) []corev1.UniqueVolumeName {
	names := append([]corev1.UniqueVolumeName{}, node.Status.VolumesInUse...)
	for _, attached := range node.Status.VolumesAttached {
		names = append(names, attached.Name)
	}
	return names
}

// Older orders attachments of the same volume: the first of them has it.
func Older(a, b *storagev1.VolumeAttachment) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}
