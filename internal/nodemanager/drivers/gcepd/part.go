package gcepd

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
)

// partitionAttribute is the attribute of a volume that is a partition of a disk. Kubernetes sets
// it when it translates source gcePersistentDisk; Stowage provisions no such volume.
const partitionAttribute = "partition"

// isPart reports whether a volume is a partition. The driver never formats one: a user made it,
// for some data.
func isPart(volume *corev1.PersistentVolume) bool {
	return volume.Spec.CSI.VolumeAttributes[partitionAttribute] != ""
}

// partOf returns the partition that a volume is, or the whole disk. If it returns the partition,
// it closes the disk.
func partOf(disk *clouddisk.Disk, volume *corev1.PersistentVolume) (*clouddisk.Disk, error) {
	if !isPart(volume) {
		return disk, nil
	}
	defer disk.Close()
	said := volume.Spec.CSI.VolumeAttributes[partitionAttribute]
	number, err := strconv.Atoi(said)
	if err != nil || number <= 0 {
		return nil, fmt.Errorf("the volume's attribute partition is %q, which isn't the number of a partition", said)
	}
	part, err := disk.Part(number)
	if err != nil {
		return nil, fmt.Errorf("looking for the volume's partition: %w", err)
	}
	return part, nil
}
