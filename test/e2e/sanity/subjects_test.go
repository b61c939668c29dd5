package sanity_test

import (
	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// Subject is what one suite is about: a driver, with one kind of volume.
type Subject struct {
	// Name is what people call it, and Driver the CSI driver's name.
	Name, Driver string
	// Backend is the StorageBackend that makes the volumes.
	Backend string
	// Block: the volumes are devices.
	Block bool
	// Bytes is how large volumes are made, and Larger how large they grow.
	Bytes, Larger int64
	// Limited: the node takes a limited number of volumes, which is tried.
	Limited bool
	// Mutable are parameters of a VolumeAttributesClass that volumes can have; nil where they can have none.
	Mutable map[string]string
}

// Names of the StorageBackends.
const (
	shareBackend       = "share"
	directoriesBackend = "directories"
	imagesBackend      = "images"
	xfsBackend         = "xfs-images"
	disksBackend       = "disks"
	hyperdisksBackend  = "hyperdisks"
)

// queues are all suites. Those of a queue run one after the other, because they have a
// backend or a node's limit in common; queues run at the same time. In the guest is what
// needs its kernel: one that mounts NFS, and lets root grow an ext4 that is mounted.
var queues = []queue{
	{inGuest: true, subjects: []Subject{
		{Name: "nfs", Driver: stowagev1alpha1.NFSDriver, Backend: shareBackend, Bytes: 64 * mebibyte, Larger: 128 * mebibyte},
		{Name: "local-image-ext4", Driver: stowagev1alpha1.LocalDriver, Backend: imagesBackend, Bytes: 64 * mebibyte, Larger: 128 * mebibyte},
	}},
	{subjects: []Subject{
		{Name: "local-directory", Driver: stowagev1alpha1.LocalDriver, Backend: directoriesBackend, Bytes: 64 * mebibyte, Larger: 128 * mebibyte},
		// An xfs has 300 MiB at least.
		{Name: "local-image-xfs", Driver: stowagev1alpha1.LocalDriver, Backend: xfsBackend, Bytes: 300 * mebibyte, Larger: 400 * mebibyte},
		{Name: "local-image-block", Driver: stowagev1alpha1.LocalDriver, Backend: xfsBackend, Block: true, Bytes: 64 * mebibyte, Larger: 128 * mebibyte},
	}},
	{subjects: []Subject{
		// A disk has 10 GiB at least.
		{Name: "gce", Driver: stowagev1alpha1.GCEDriver, Backend: disksBackend, Bytes: 10 * gibibyte, Larger: 11 * gibibyte, Limited: true},
		{Name: "gce-block", Driver: stowagev1alpha1.GCEDriver, Backend: disksBackend, Block: true, Bytes: 10 * gibibyte, Larger: 11 * gibibyte, Limited: true},
	}},
	{subjects: []Subject{
		{
			Name: "gce-hyperdisk", Driver: stowagev1alpha1.GCEDriver, Backend: hyperdisksBackend, Bytes: 10 * gibibyte, Larger: 11 * gibibyte, Limited: true,
			Mutable: map[string]string{"iops": "3600", "throughput": "160Mi"},
		},
	}},
}

// queue is suites that run one after the other, on the machine or in the guest.
type queue struct {
	inGuest  bool
	subjects []Subject
}

// subjects are those of all queues.
func subjects() (all []Subject) {
	for _, one := range queues {
		all = append(all, one.subjects...)
	}
	return all
}
