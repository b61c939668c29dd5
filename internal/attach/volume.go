package attach

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/volume"
)

// Volume is storage that a node has only while it is attached to it.
type Volume struct {
	// Name is the kubelet's name of it, in node.status.volumesAttached and volumesInUse.
	Name corev1.UniqueVolumeName
	// Driver is the CSI driver that attaches it. Empty: no driver does. The node itself logs
	// in to the storage, and waits only until the name is in volumesAttached.
	Driver string
	// Handle is the driver's name of it.
	Handle string
	// Source is the source in the spec of its VolumeAttachments.
	Source storagev1.VolumeAttachmentSource
	// SingleNode is true of what no two nodes may have at the same time.
	SingleNode bool
}

// NeedsAttachment reports whether a driver attaches it, on behalf of a VolumeAttachment.
func (v Volume) NeedsAttachment() bool { return v.Driver != "" }

// AttachmentName returns the name of its VolumeAttachment for a node.
func (v Volume) AttachmentName(node string) string {
	return volume.AttachmentName(v.Driver, v.Handle, node)
}

// Key returns what all PersistentVolumes of the same storage have in common.
func (v Volume) Key() string { return volume.Key(v.Driver, v.Handle) }

// String returns the name for people: that of its PersistentVolume, if it has one.
func (v Volume) String() string {
	switch {
	case v.Source.PersistentVolumeName != nil:
		return *v.Source.PersistentVolumeName
	case v.Handle != "":
		return v.Handle
	default:
		return string(v.Name)
	}
}

// Prefixes of the kubelet's names of volumes that no CSI driver attaches.
const (
	iscsiPrefix = "kubernetes.io/iscsi/"
	fcPrefix    = "kubernetes.io/fc/"
)

// Required reports whether volumes of a driver are attached at all. A driver without a
// CSIDriver object (nil) counts as one that attaches: the kubelet assumes so, too, and waits.
func Required(driver *storagev1.CSIDriver) bool {
	return driver == nil || ptr.Deref(driver.Spec.AttachRequired, true)
}
