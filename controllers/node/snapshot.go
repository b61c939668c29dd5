package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
)

// snapshot is what one pass knows of a node.
type snapshot struct {
	attach.View
	// users are the pods that need each of the desired volumes.
	users map[corev1.UniqueVolumeName][]*corev1.Pod
	// attached are the desired volumes with an attachment to the node, or in its
	// volumesAttached: all workers see them.
	attached map[corev1.UniqueVolumeName]bool
	// inTreeDisks is true if Stowage attaches in-tree disks to this node.
	inTreeDisks bool
	// answers are those of clouds in this pass, by subject.
	answers map[string]any
}

// add adds a volume that a pod needs.
func (s *snapshot) add(volume attach.Volume, pod *corev1.Pod) {
	if _, known := s.users[volume.Name]; !known {
		s.Desired = append(s.Desired, volume)
	}
	s.users[volume.Name] = append(s.users[volume.Name], pod)
}

// awaits reports whether a pod needs a volume that has neither an attachment to the node nor
// an entry in its volumesAttached yet.
func (s *snapshot) awaits(name corev1.UniqueVolumeName) bool {
	_, desired := s.users[name]
	return desired && !s.attached[name]
}

// isAttached reports whether the node has a volume: then other nodes do not matter.
func (s *snapshot) isAttached(volume attach.Volume) bool {
	name := volume.AttachmentName(s.Name)
	return slices.ContainsFunc(s.Attachments, func(attachment attach.Attachment) bool {
		return attachment.Object.Name == name && attachment.Object.Status.Attached
	})
}

// machineOf returns the machine that a volume is attached to: another machine may have the
// node's name by now.
func (s *snapshot) machineOf(object *storagev1.VolumeAttachment) backend.NodeIdentity {
	identity := backend.NodeIdentity{Name: s.Name}
	if object != nil {
		intent, _ := attachintent.Of(object) // nil if it can't be read: the node object says it, too
		identity.ProviderID, identity.DriverID = attachintent.InstanceOf(object, intent), object.Annotations[attachintent.DriverIDAnnotation]
	}
	if identity.ProviderID == "" && s.Node != nil {
		identity.ProviderID = s.Node.Spec.ProviderID
	}
	return identity
}
