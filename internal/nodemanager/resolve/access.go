package resolve

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/volume"
)

// onlyReads says whether a pod uses a claim, which it may name more than once but
// gets mounted once, without writing.
func onlyReads(pod *corev1.Pod, claim string) bool {
	for _, volume := range pod.Spec.Volumes {
		readOnly := volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ReadOnly
		if podclaims.ClaimNameOf(pod, volume) == claim && !readOnly {
			return false
		}
	}
	return true
}

// accessOf is what a pod may do with a volume: it reads only if it says so, or
// if the volume can't be written by anybody.
func accessOf(pv *corev1.PersistentVolume, readOnly bool) mount.Access {
	if readOnly || volume.IsReadOnly(pv) {
		return mount.ReadOnly
	}
	return mount.ReadWrite
}

// IsForOnePod says whether no second pod may have the volume, not even on the same
// node. Access modes of volumes without a claim don't exist.
func IsForOnePod(resolved *ResolvedVolume) bool {
	volume := resolved.PersistentVolume
	return volume != nil && slices.Contains(volume.Spec.AccessModes, corev1.ReadWriteOncePod)
}
