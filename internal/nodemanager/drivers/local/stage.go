package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// stage mounts the file system in an image, unless it is mounted already, and makes it as large
// as the image. That makes up for growth while no pod had the volume. If anything else is mounted
// there, the error wraps ErrOtherVolume.
func (i *images) stage(ctx context.Context, image *os.File, spec volumes.Spec, at string) error {
	loop, err := loopdev.Attach(ctx, image, loopdev.ForFileSystem)
	if err != nil {
		return err
	}
	// Once the file system is mounted, the mount keeps the device attached.
	defer loop.Close()
	table, err := i.mounter.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(at)
	switch {
	case mounted && staged.Device != loop.Device():
		return fmt.Errorf("the device of the volume is %s, and %s is mounted: %w", loop.Device(), staged.Device, volumes.ErrOtherVolume)
	case mounted:
		return nil
	}
	system, err := i.systemOn(ctx, loop, spec)
	if err != nil {
		return err
	}
	// fsck must not run on a file system that an earlier pod still has mounted.
	if system.Access == mount.ReadWrite && len(table.Shows(loop.Device(), "/")) == 0 {
		if err := mounting.Prepare(ctx, i.systems, system); err != nil {
			return err
		}
	}
	return mounting.MountSystem(ctx, i.mounter, i.systems, system, at)
}

// systemOn decides which file system to mount, and how.
func (i *images) systemOn(ctx context.Context, loop *loopdev.Loop, spec volumes.Spec) (mount.FileSystem, error) {
	found, err := i.systems.Probe(ctx, loop.Path())
	if err != nil {
		return mount.FileSystem{}, err
	}
	if found == "" {
		return mount.FileSystem{}, errors.New("the volume's image has no file system: it is never formatted when it is mounted, because it may hold data")
	}
	system := mount.FileSystem{Type: found, Source: loop.Path()}
	if mounting.IsForReadersOnly(spec.PersistentVolume) {
		system.Access = mount.ReadOnly
	}
	mounting.SetLabel(&system, i.owner, spec)
	err = mounting.SetOptions(&system, spec.PersistentVolume.Spec.MountOptions)
	return system, err
}
