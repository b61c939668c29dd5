package resolve

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/volume"
)

// onlyReads reports whether all of a pod's volumes of a claim, which is mounted once, are read-only.
func onlyReads(pod *corev1.Pod, claim string) bool {
	for _, volume := range pod.Spec.Volumes {
		readOnly := volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ReadOnly
		if podclaims.ClaimNameOf(pod, volume) == claim && !readOnly {
			return false
		}
	}
	return true
}

// accessOf is read-only if the pod's volume or the volume object is.
func accessOf(pv *corev1.PersistentVolume, readOnly bool) mount.Access {
	if readOnly || volume.IsReadOnly(pv) {
		return mount.ReadOnly
	}
	return mount.ReadWrite
}

// IsForOnePod reports whether the volume is ReadWriteOncePod. A volume without a claim has no access
// modes.
func IsForOnePod(resolved *ResolvedVolume) bool {
	volume := resolved.PersistentVolume
	return volume != nil && slices.Contains(volume.Spec.AccessModes, corev1.ReadWriteOncePod)
}
