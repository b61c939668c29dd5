package attach

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
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
func (v Volume) AttachmentName(node string) string { return AttachmentName(v.Driver, v.Handle, node) }

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

// AttachmentName is the name that a VolumeAttachment has: the kubelet computes it, and
// waits for the attachment of that name.
func AttachmentName(driver, handle, node string) string {
	return fmt.Sprintf("%s%x", attachmentPrefix, sha256.Sum256([]byte(handle+driver+node)))
}

// Parts of the names that volumes and attachments have.
const (
	attachmentPrefix = "csi-"
	csiPrefix        = "kubernetes.io/csi/"
	iscsiPrefix      = "kubernetes.io/iscsi/"
	fcPrefix         = "kubernetes.io/fc/"
	handleSeparator  = "^"
)

// CSIName is the kubelet's name of a volume that a CSI driver attaches.
func CSIName(driver, handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(csiPrefix + driver + handleSeparator + handle)
}

// parseCSIName takes such a name apart. A driver's name has no separator; a handle may.
func parseCSIName(name corev1.UniqueVolumeName) (driver, handle string, is bool) {
	rest, is := strings.CutPrefix(string(name), csiPrefix)
	if !is {
		return "", "", false
	}
	return strings.Cut(rest, handleSeparator)
}

// Required tells whether volumes of a driver are attached at all. A driver that nobody
// described (nil) counts as one that attaches: the kubelet thinks so, too, and waits.
func Required(driver *storagev1.CSIDriver) bool {
	return driver == nil || ptr.Deref(driver.Spec.AttachRequired, true)
}

// isSingleNode tells whether a volume with these access modes is for one node at a
// time. Where nothing is said, the driver knows, and refuses by itself.
func isSingleNode(modes []corev1.PersistentVolumeAccessMode) bool {
	return len(modes) > 0 && !slices.Contains(modes, corev1.ReadWriteMany) && !slices.Contains(modes, corev1.ReadOnlyMany)
}
