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
	errTakenAway        = errors.New("somebody else took away the volume's loop device: delete the pod, and start it again")
)

// Place is the staging path of an image that pods see as a device, and where agents of the
// layout before had an image for all pods of the node.
type Place string

// image is a file that the image is mounted on. It tells which image is shown here,
// also when the image has lost its name, and not any more after a reboot.
func (p Place) image() string { return filepath.Join(string(p), "image") }

// mount is where the file system is mounted.
func (p Place) mount() string { return filepath.Join(string(p), "mount") }

// noted opens the image that is shown here; nil if there is none.
func (p Place) noted() (*os.File, error) {
	image, err := os.OpenFile(p.image(), mounting.OpenOnly, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the image that is mounted: %w", err)
	}
	return image, nil
}

// check is an error if the image was removed, or its file system has failed. A place
// where no image is shown is well.
func (p Place) check(table mount.Table) error {
	if shown, mounted := table.At(p.image()); mounted && shown.RootDeleted {
		return errRemoved
	}
	staged, mounted := table.At(p.mount())
	if mounted && filesystem.HasStopped(staged) {
		return mounting.ErrReadOnly
	}
	return nil
}

// checkDevice is an error if a device shows another image, or none.
func (p Place) checkDevice(path string) error {
	image, err := p.noted()
	if err != nil {
		return err
	}
	if image == nil {
		return errTakenAway
	}
	defer image.Close()
	shows, err := loopdev.IsBackedBy(path, image)
	if err == nil && !shows {
		err = errTakenAway
	}
	return err
}
