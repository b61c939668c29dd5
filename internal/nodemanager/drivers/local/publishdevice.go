package local

import (
	"context"
	"os"
	"slices"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// bindDevice makes the device of an image, which is noted at a place, visible at target.
func (i *images) bindDevice(ctx context.Context, image *os.File, place Place, target string, access mount.Access) error {
	loop, err := loopdev.Attach(ctx, image, loopdev.ForBlock)
	if err != nil {
		return err
	}
	defer loop.Close()
	node, err := os.OpenFile(loop.Path(), mounting.OpenOnly, 0)
	if err != nil {
		return err
	}
	defer node.Close()
	if err := volumes.BindFileExactly(i.mounter, node, target, access); err != nil {
		return err
	}
	users, err := i.usersOf(place.mount(), loop)
	if err != nil {
		return err
	}
	return protect(loop, users)
}

// protect keeps a device from being written while no pod that has it may. It is one
// for all pods: beside a pod that writes, another one that only reads could, too.
func protect(loop *loopdev.Loop, users []mount.Point) error {
	writes := slices.ContainsFunc(users, func(user mount.Point) bool { return user.Access == mount.ReadWrite })
	return loop.SetReadOnly(!writes)
}
