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

// find finds the loop device of the image that is bound in a folder; nil if it has none.
func find(folder ImageFolder) (*loopdev.Loop, error) {
	image, err := folder.open()
	if image == nil || err != nil {
		return nil, err
	}
	defer image.Close()
	return loopdev.Find(image)
}

// detach detaches a loop device, if there is one, and makes it writable: the next image that gets
// it must not find it read-only.
func detach(ctx context.Context, loop *loopdev.Loop) error {
	if loop == nil {
		return nil
	}
	if err := loop.SetReadOnly(false); err != nil {
		return err
	}
	return loop.Detach(ctx)
}

// usersOf returns where a device, or its file system, is mounted, apart from the staging path.
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
