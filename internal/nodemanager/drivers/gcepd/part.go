package gcepd

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
)

// partitionAttribute is the attribute of volumes that are a partition of a disk, as
// Kubernetes translates those of source gcePersistentDisk. Stowage makes no such volume.
const partitionAttribute = "partition"

// isPart says whether a volume is a partition. Somebody made it, for some data: it is
// never formatted.
func isPart(volume *corev1.PersistentVolume) bool {
	return volume.Spec.CSI.VolumeAttributes[partitionAttribute] != ""
}

// partOf is the partition that a volume is, or the whole disk. The disk is closed where it
// isn't what is returned.
func partOf(disk *clouddisk.Disk, volume *corev1.PersistentVolume) (*clouddisk.Disk, error) {
	if !isPart(volume) {
		return disk, nil
	}
	defer disk.Close()
	said := volume.Spec.CSI.VolumeAttributes[partitionAttribute]
	number, err := strconv.Atoi(said)
	if err != nil || number <= 0 {
		return nil, fmt.Errorf("the volume is said to be partition %q of its disk, which is no number of one", said)
	}
	part, err := disk.Part(number)
	if err != nil {
		return nil, fmt.Errorf("looking for the volume's partition: %w", err)
	}
	return part, nil
}
