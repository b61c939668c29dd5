package mounting

import "github.com/stowage-dev/stowage/internal/mount"

// Mounter is a Mounter that can also take away what is in use.
type Mounter interface {
	mount.Mounter
	// Detach takes away the topmost mount at path, also one that is in use.
	Detach(path string) error
}

// Detaching is a Mounter that takes away also what is in use.
type Detaching struct{ Mounter }

// Unmount unmounts the topmost mount at path, also one that is in use.
func (d Detaching) Unmount(path string) error { return d.Detach(path) }
