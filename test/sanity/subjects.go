package main

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
}

// Names of the StorageBackends.
const (
	shareBackend       = "share"
	directoriesBackend = "directories"
	imagesBackend      = "images"
	xfsBackend         = "xfs-images"
	disksBackend       = "disks"
)

// subjects are all of them. An xfs has 300 MiB at least, and a disk 10 GiB.
var subjects = []Subject{
	{Name: "nfs", Driver: stowagev1alpha1.NFSDriver, Backend: shareBackend, Bytes: 64 * mebibyte, Larger: 128 * mebibyte},
	{Name: "local-directory", Driver: stowagev1alpha1.LocalDriver, Backend: directoriesBackend, Bytes: 64 * mebibyte, Larger: 128 * mebibyte},
	{Name: "local-image", Driver: stowagev1alpha1.LocalDriver, Backend: imagesBackend, Bytes: 64 * mebibyte, Larger: 128 * mebibyte},
	{Name: "local-image-xfs", Driver: stowagev1alpha1.LocalDriver, Backend: xfsBackend, Bytes: 300 * mebibyte, Larger: 400 * mebibyte},
	{Name: "local-image-block", Driver: stowagev1alpha1.LocalDriver, Backend: imagesBackend, Block: true, Bytes: 64 * mebibyte, Larger: 128 * mebibyte},
	{Name: "gce", Driver: stowagev1alpha1.GCEDriver, Backend: disksBackend, Bytes: 10 * gibibyte, Larger: 11 * gibibyte, Limited: true},
	{Name: "gce-block", Driver: stowagev1alpha1.GCEDriver, Backend: disksBackend, Block: true, Bytes: 10 * gibibyte, Larger: 11 * gibibyte, Limited: true},
}

// inGuest: only the kernel of a guest can be counted on to mount NFS.
func (s Subject) inGuest() bool { return s.Driver == stowagev1alpha1.NFSDriver }
