// Package accessmode chooses the access mode of a new disk by how its claim is to be used. It calls no API: the Compute API
// alone knows which types of disks can have which mode.
package accessmode

import (
	"path"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/volume"
)

// hyperdiskPrefix begins the types of Google's Hyperdisks, which have access modes. Other disks have one writer, or many readers.
const hyperdiskPrefix = "hyperdisk-"

// Of is the access mode of a new disk; empty for the one that its type has by itself. With an error, of kind Invalid, no such
// disk can be.
func Of(diskType string, modes []corev1.PersistentVolumeAccessMode) (string, error) {
	isHyperdisk := strings.HasPrefix(diskType, hyperdiskPrefix)
	switch {
	case slices.Contains(modes, corev1.ReadWriteMany) && isHyperdisk:
		return cloud.WrittenByMany, nil
	case slices.Contains(modes, corev1.ReadWriteMany):
		return "", backend.Invalid.Errorf("a disk of type %s can't be ReadWriteMany: use a class with a Hyperdisk that can, such as hyperdisk-balanced", diskType)
	case volume.OnlyReaders(modes) && isHyperdisk:
		return cloud.ReadByMany, nil
	case slices.Contains(modes, corev1.ReadOnlyMany) && isHyperdisk:
		return "", backend.Invalid.Errorf("a disk of type %s can't be written first and be ReadOnlyMany later: ask for ReadOnlyMany alone, and restore a snapshot, "+
			"or use a class with another type", diskType)
	}
	return "", nil
}

// IsShared reports whether a volume is a device that several machines may write. A file system would break.
func IsShared(pv *corev1.PersistentVolume) bool {
	return pv != nil && ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock &&
		slices.Contains(pv.Spec.AccessModes, corev1.ReadWriteMany)
}

// WhyRefused explains that a disk with an access mode was refused.
func WhyRefused(disk *compute.Disk, refusal error) error {
	example := map[string]string{cloud.WrittenByMany: "ReadWriteMany has a type such as hyperdisk-balanced", cloud.ReadByMany: "ReadOnlyMany has hyperdisk-ml"}
	return backend.Invalid.Errorf("the Compute API makes no such disk of type %.63s with the access mode %s: use a class with a type that has it (%s), "+
		"or ask for ReadWriteOnce: %w", path.Base(disk.Type), disk.AccessMode, example[disk.AccessMode], refusal)
}
