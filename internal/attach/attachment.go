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

// Attachment is a VolumeAttachment and its volume.
type Attachment struct {
	Object *storagev1.VolumeAttachment
	// Foreign is true if the attachment is not ours to delete. Either its name is not the one
	// that a node waits for, or it attaches what pods of a node cannot request.
	Foreign bool
	// Volume has no Name if it is unknown: the PersistentVolume is gone, and the node's status
	// lists no volume that it could be.
	Volume Volume
}

// OfAttachment finds the volume of a VolumeAttachment. The PersistentVolume and the node are
// nil if they are gone.
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
	if IsInTreeDisk(pv) && node != nil && object.Spec.Attacher == stowagev1alpha1.GCEDriver {
		if volume, _, err := OfInTreeDisk(pv, node); err == nil && isOf(object, volume) {
			return Attachment{Object: object, Volume: volume}
		}
	}
	// The PersistentVolume is gone, or is another one of the same name by now.
	volume := Volume{Driver: object.Spec.Attacher, Source: source}
	if node != nil {
		volume.Name, volume.Handle = nameAmong(node, object)
	}
	return Attachment{Object: object, Volume: volume}
}

// ofInlineSpec handles inline volumes of pods, of the types that Kubernetes once attached
// itself.
func ofInlineSpec(object *storagev1.VolumeAttachment, spec *corev1.PersistentVolumeSpec) Attachment {
	if spec.CSI == nil || !translator.IsMigratedCSIDriverByName(spec.CSI.Driver) {
		return Attachment{Object: object, Foreign: true}
	}
	volume := ofCSI(&corev1.PersistentVolume{Spec: *spec}, spec.CSI)
	volume.Source = object.Spec.Source
	return Attachment{Object: object, Volume: volume, Foreign: !isOf(object, volume)}
}

func isOf(object *storagev1.VolumeAttachment, volume Volume) bool {
	return object.Spec.Attacher == volume.Driver && object.Name == volume.AttachmentName(object.Spec.NodeName)
}

// hasHashedName reports whether an attachment has a name as an attach/detach controller makes
// it.
func hasHashedName(object *storagev1.VolumeAttachment) bool {
	hash, named := strings.CutPrefix(object.Name, volume.AttachmentPrefix)
	decoded, err := hex.DecodeString(hash)
	return named && err == nil && len(decoded) == 32
}

// nameAmong finds the volume of an attachment in the status of its node.
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
