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

// bindDevice binds the loop device of an image at target.
func (i *images) bindDevice(ctx context.Context, image *os.File, folder ImageFolder, target string, access mount.Access) error {
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
	users, err := i.usersOf(folder.mount(), loop)
	if err != nil {
		return err
	}
	return protect(loop, users)
}

// protect makes a device read-only while no pod that has it may write it. All pods share one
// device: beside a pod that writes, a pod that only reads could write, too.
func protect(loop *loopdev.Loop, users []mount.Point) error {
	writes := slices.ContainsFunc(users, func(user mount.Point) bool { return user.Access == mount.ReadWrite })
	return loop.SetReadOnly(!writes)
}
