package csi

import (
	"errors"
	"os"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
)

// lacks says whether somebody took away the note which image is shown at the place, or the
// mount of its file system, but not both. Of a volume that is no image there is neither.
func (p place) lacks(table mount.Table) bool {
	return table.IsMountPoint(p.image()) != table.IsMountPoint(p.mount())
}

// noteAgain notes which image is shown of a volume where the note was taken away by hand.
// It comes before what a pod sees goes, at seen, which with the mount at the place is all
// that still leads to the loop device.
func (i *Images) noteAgain(volume, seen string) error {
	place := i.at(volume)
	if _, err := os.Lstat(string(place)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	table, err := i.mounter.Table()
	if err != nil || table.IsMountPoint(place.image()) {
		return err
	}
	image, err := imageSeen(table, place.mount(), seen)
	if image == nil || err != nil {
		return err
	}
	defer image.Close()
	return i.note(place, image)
}

// imageSeen opens the image of which the first of these paths shows something; nil if
// none does.
func imageSeen(table mount.Table, paths ...string) (*os.File, error) {
	for _, path := range paths {
		shown, mounted := table.At(path)
		if !mounted {
			continue
		}
		image, err := imageAt(shown.Device, path)
		if image != nil || err != nil {
			return image, err
		}
	}
	return nil, nil
}

// imageAt opens the image that the loop device of a major:minor shows or, where that is none,
// the one at a path.
func imageAt(number, path string) (*os.File, error) {
	loop, err := loopdev.LoopAt(number)
	if err != nil {
		return nil, err
	}
	if loop != nil {
		defer loop.Close()
		path = loop.Path()
	}
	return loopdev.ImageOf(path)
}
