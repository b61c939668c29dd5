package csi

import (
	"context"
	"errors"
	"os"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
)

// unstage takes away what is shown of a volume that no pod of the node has any more.
// A volume that isn't an image, or isn't shown, is a success.
func (i *Images) unstage(ctx context.Context, volume string) error {
	place := i.at(volume)
	if _, err := os.Lstat(string(place)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	release, err := i.acquire(ctx, volume)
	if err != nil {
		return err
	}
	defer release()
	loop, err := find(place)
	if err != nil {
		return err
	}
	if loop != nil {
		left, err := i.letGo(ctx, place, loop)
		if err != nil || left {
			return err
		}
	}
	return place.remove(i.mounter)
}

// find finds the loop device of the image that is shown at a place; nil if it has
// none.
func find(place place) (*loopdev.Loop, error) {
	image, err := place.noted()
	if image == nil || err != nil {
		return nil, err
	}
	defer image.Close()
	return loopdev.Find(image)
}

// letGo unmounts and detaches what no pod has any more, and says whether one has.
func (i *Images) letGo(ctx context.Context, place place, loop *loopdev.Loop) (left bool, err error) {
	defer loop.Close()
	users, err := i.usersOf(place.mount(), loop)
	if err != nil {
		return false, err
	}
	if len(users) > 0 {
		return true, protect(loop, users)
	}
	if err := i.mounter.Unmount(place.mount()); err != nil {
		return false, err
	}
	return false, detach(ctx, loop)
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

// usersOf is the mounts of pods that show a device, or the file system on it, which is
// staged at a path.
func (i *Images) usersOf(staged string, loop *loopdev.Loop) ([]mount.Point, error) {
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
	node, err := os.OpenFile(loop.Path(), openOnly, 0)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	shown, err := mount.Visible(node)
	return append(users, shown...), err
}
