package csi

import (
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// needsFSGroup reports whether a volume gets its pod's fsGroup: the pod may write it, and no
// other node may.
func needsFSGroup(spec volumes.Spec) bool {
	_, wanted := ownership.GroupOf(spec.Pod, spec.Access)
	return wanted && spec.Access == mount.ReadWrite && ownership.IsForOneNode(spec.PersistentVolume)
}
