package volumes

import corev1 "k8s.io/api/core/v1"

// csiPrefix begins the names that nodes' statuses have for volumes of CSI drivers.
const csiPrefix = "kubernetes.io/csi/"

// UniqueName is the name that a node's status has for a volume of a CSI driver, in
// volumesInUse and volumesAttached.
func UniqueName(driver, handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(csiPrefix + driver + "^" + handle)
}
