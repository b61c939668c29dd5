package gcepd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// errUnclean: the kernel has to write a file system before it can be read, and may not.
var errUnclean = errors.New("the file system was mounted when its snapshot was made, or when its last node failed, and its journal can't be replayed on a disk that is " +
	"attached for reading only: make the snapshot while no pod has the volume; or restore it for ReadWriteOnce, have a pod mount that once, and make a snapshot of that")

// mountDisk mounts the file system on a disk, unless it is mounted already.
func (s *Driver) mountDisk(ctx context.Context, disk *clouddisk.Disk, spec volumes.Spec, folder diskFolder) error {
	table, err := s.Mounter.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(folder.system)
	switch {
	case mounted && staged.Device != disk.Device():
		return fmt.Errorf("the disk of the volume is %s, and %s is mounted: %w", disk.Device(), staged.Device, volumes.ErrOtherVolume)
	case mounted:
		return nil
	}
	unused := len(table.Shows(disk.Device(), "/")) == 0
	system, err := s.systemOn(ctx, disk, spec, folder)
	if err != nil {
		return err
	}
	// fsck must not run on a file system that an earlier pod still has mounted.
	if system.Access == mount.ReadWrite && unused {
		if err := mounting.Prepare(ctx, s.Systems, system); err != nil {
			return err
		}
	}
	err = mounting.MountSystem(ctx, s.Mounter, s.Systems, system, folder.system)
	if _, unmade := os.Stat(folder.system); unmade == nil && system.Access == mount.ReadOnly && errors.Is(err, unix.EROFS) {
		err = fmt.Errorf("%w: %w", errUnclean, err)
	}
	return err
}

// systemOn decides which file system to mount, and how. On an empty disk, it makes one.
func (s *Driver) systemOn(ctx context.Context, disk *clouddisk.Disk, spec volumes.Spec, folder diskFolder) (mount.FileSystem, error) {
	volume, system := spec.PersistentVolume, mount.FileSystem{Source: disk.Path()}
	readOnly, err := disk.IsReadOnly()
	if err != nil {
		return system, err
	}
	switch {
	case mounting.IsForReadersOnly(volume):
		system.Access = mount.ReadOnly
	case readOnly:
		return system, errOnlyToRead
	}
	if system.Access == mount.ReadOnly || isPart(volume) {
		system.Type, err = s.systemToKeep(ctx, disk)
	} else {
		system.Type, err = s.ensureSystem(ctx, disk, volume, folder)
	}
	if err != nil {
		return system, err
	}
	mounting.SetLabel(&system, s.Owner, spec)
	err = mounting.SetOptions(&system, volume.Spec.MountOptions)
	return system, err
}

// systemToKeep returns the file system of a disk that must not be formatted: one for reading
// only, or a partition.
func (s *Driver) systemToKeep(ctx context.Context, disk *clouddisk.Disk) (string, error) {
	found, err := s.Systems.Probe(ctx, disk.Path())
	if err == nil && found == "" {
		return "", errors.New("the volume's disk has no file system, and is for reading only, or is a partition: it isn't formatted")
	}
	return found, err
}
