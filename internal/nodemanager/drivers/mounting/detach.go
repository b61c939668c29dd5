package mounting

import "github.com/stowage-dev/stowage/internal/mount"

// Mounter is a mount.Mounter that can also detach what is in use.
type Mounter interface {
	mount.Mounter
	// Detach removes the topmost mount at path, even if it is in use.
	Detach(path string) error
}

// Detaching is a Mounter whose Unmount detaches.
type Detaching struct{ Mounter }

// Unmount removes the topmost mount at path, even if it is in use.
func (d Detaching) Unmount(path string) error { return d.Detach(path) }
