package csi

import "github.com/stowage-dev/stowage/internal/mount"

// DiskMounter is a Mounter that can also take away what is in use.
type DiskMounter interface {
	mount.Mounter
	// Detach takes away the topmost mount at path, also one that is in use.
	Detach(path string) error
}

// detaching is a Mounter that takes away also what is in use.
type detaching struct{ DiskMounter }

func (d detaching) Unmount(path string) error { return d.Detach(path) }
