package volume

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// AllowsMultiAttach reports whether several nodes may have a volume with these access modes at the
// same time. It decides as Kubernetes' attach/detach controller: one mode that allows several nodes
// is enough, and without any mode the driver decides. It is no promise that the driver can: a backend
// still refuses a second node that would write.
func AllowsMultiAttach(modes []corev1.PersistentVolumeAccessMode) bool {
	return len(modes) == 0 || slices.Contains(modes, corev1.ReadWriteMany) || slices.Contains(modes, corev1.ReadOnlyMany)
}

// OnlyReaders reports whether these access modes let no pod write. The API server accepts a
// mode that is listed twice.
func OnlyReaders(modes []corev1.PersistentVolumeAccessMode) bool {
	return len(modes) > 0 && !slices.ContainsFunc(modes, func(mode corev1.PersistentVolumeAccessMode) bool {
		return mode != corev1.ReadOnlyMany
	})
}

// IsReadOnly reports whether no pod may write a volume, whatever the pod itself says. Nodes
// have such a volume attached, staged and mounted for reading.
func IsReadOnly(pv *corev1.PersistentVolume) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.ReadOnly || OnlyReaders(pv.Spec.AccessModes)
}
