package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
)

var (
	errRemoved = errors.New("the volume's image was removed from the disk while it was mounted: what it held, and what is written to it now, " +
		"is lost when the last pod of this node that uses it ends: copy what you need, and delete the pods")
	errRemovedDirectory = errors.New("the volume's directory was removed from the disk while it was mounted: what it held is lost: delete the pods of this node that use it")
	errLoopDetached     = errors.New("the volume's loop device was detached from outside Stowage: delete the pod, and start it again")
)

// ImageFolder is a folder in which an image is bound. It is the staging path of an image that
// pods see as a device. Agents of the previous layout made one for each image.
type ImageFolder string

// image is a file on which the image is mounted. It says which image that is, also when the image
// has lost its name, but only until the next reboot.
func (p ImageFolder) image() string { return filepath.Join(string(p), "image") }

// mount is where the file system is mounted.
func (p ImageFolder) mount() string { return filepath.Join(string(p), "mount") }

// open opens the image that is bound here; nil if none is.
func (p ImageFolder) open() (*os.File, error) {
	image, err := os.OpenFile(p.image(), mounting.OpenOnly, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the image that is mounted: %w", err)
	}
	return image, nil
}

// check returns an error if the image was removed, or its file system has failed. A folder
// without an image is healthy.
func (p ImageFolder) check(table mount.Table) error {
	if shown, mounted := table.At(p.image()); mounted && shown.RootDeleted {
		return errRemoved
	}
	staged, mounted := table.At(p.mount())
	if mounted && filesystem.HasStopped(staged) {
		return mounting.ErrReadOnly
	}
	return nil
}

// checkDevice returns an error if a device shows another image, or none.
func (p ImageFolder) checkDevice(path string) error {
	image, err := p.open()
	if err != nil {
		return err
	}
	if image == nil {
		return errLoopDetached
	}
	defer image.Close()
	shows, err := loopdev.IsBackedBy(path, image)
	if err == nil && !shows {
		err = errLoopDetached
	}
	return err
}
