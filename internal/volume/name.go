package volume

import (
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

const csiPrefix = "kubernetes.io/csi/"

// AttachmentPrefix is what the names of VolumeAttachments begin with.
const AttachmentPrefix = "csi-"

// AttachmentName is the name of the VolumeAttachment of a volume on a node. The kubelet
// computes the same name, and waits for the VolumeAttachment that has it.
func AttachmentName(driver, handle, node string) string {
	return fmt.Sprintf("%s%x", AttachmentPrefix, sha256.Sum256([]byte(handle+driver+node)))
}

// UniqueName is the kubelet's name of a volume of a CSI driver, as in volumesAttached and
// volumesInUse of a Node.
func UniqueName(driver, handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(csiPrefix + Key(driver, handle))
}

// ParseUniqueName returns the driver and the handle in a name that UniqueName made; false
// for all other names.
func ParseUniqueName(name corev1.UniqueVolumeName) (driver, handle string, is bool) {
	rest, is := strings.CutPrefix(string(name), csiPrefix)
	if !is {
		return "", "", false
	}
	return strings.Cut(rest, handleSeparator)
}

// ClaimName is the name of the claim behind a pod's volume. It is the one that the volume names, or
// the one of a generic ephemeral volume. It is "" for volumes of other types.
func ClaimName(pod *corev1.Pod, source *corev1.Volume) string {
	switch {
	case source.PersistentVolumeClaim != nil:
		return source.PersistentVolumeClaim.ClaimName
	case source.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, source)
	default:
		return ""
	}
}
