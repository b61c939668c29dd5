package attach

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/volume"
)

// Volume is storage that a node has only while it is attached to it.
type Volume struct {
	// Name is what the kubelet calls it, in node.status.volumesAttached and
	// volumesInUse.
	Name corev1.UniqueVolumeName
	// Driver is the CSI driver that attaches it. Empty: nobody does, the node itself
	// logs in to where the storage is, and waits only until its name is in
	// volumesAttached.
	Driver string
	// Handle is what the driver knows it by.
	Handle string
	// Source is what its VolumeAttachments say that they attach.
	Source storagev1.VolumeAttachmentSource
	// SingleNode is true of what no two nodes may have at the same time.
	SingleNode bool
}

// NeedsAttachment tells whether a VolumeAttachment has to ask somebody to attach it.
func (v Volume) NeedsAttachment() bool { return v.Driver != "" }

// AttachmentName is the name of its VolumeAttachment for a node.
func (v Volume) AttachmentName(node string) string {
	return volume.AttachmentName(v.Driver, v.Handle, node)
}

// Key is what all volume objects of the same storage have in common.
func (v Volume) Key() string { return volume.Key(v.Driver, v.Handle) }

// String is what people know the volume by: its volume object, where it has one.
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

// Parts of the kubelet's names of volumes that no CSI driver attaches.
const (
	iscsiPrefix = "kubernetes.io/iscsi/"
	fcPrefix    = "kubernetes.io/fc/"
)

// Required tells whether volumes of a driver are attached at all. A driver that nobody
// described (nil) counts as one that attaches: the kubelet thinks so, too, and waits.
func Required(driver *storagev1.CSIDriver) bool {
	return driver == nil || ptr.Deref(driver.Spec.AttachRequired, true)
}
