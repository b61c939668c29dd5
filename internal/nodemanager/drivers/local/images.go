package local

import (
	"context"
	"os"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// images attaches images to loop devices and mounts the file systems in them.
type images struct {
	mounter mount.Mounter
	systems filesystem.FileSystems
	owner   ownership.Owner
}

// find finds the loop device of the image that is noted at a place; nil if it has none.
func find(place Place) (*loopdev.Loop, error) {
	image, err := place.noted()
	if image == nil || err != nil {
		return nil, err
	}
	defer image.Close()
	return loopdev.Find(image)
}

// detach takes a loop device away, if there is one.
func detach(ctx context.Context, loop *loopdev.Loop) error {
	if loop == nil {
		return nil
	}
	if err := loop.SetReadOnly(false); err != nil {
		return err
	}
	return loop.Detach(ctx)
}

// usersOf is where a device, or the file system on it, is mounted but where it is staged.
func (i *images) usersOf(staged string, loop *loopdev.Loop) ([]mount.Point, error) {
	table, err := i.mounter.Table()
	if err != nil {
		return nil, err
	}
	var users []mount.Point
	for _, point := range table.Shows(loop.Device(), "/") {
		if point.Path != staged {
			users = append(users, point)
		}
	}
	node, err := os.OpenFile(loop.Path(), mounting.OpenOnly, 0)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	shown, err := mount.Visible(node)
	return append(users, shown...), err
}
