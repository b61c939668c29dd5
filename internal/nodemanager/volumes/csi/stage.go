package csi

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/volume"
)

// stage mounts the file system in an image, unless that was done before, and makes it
// as large as the image is: growth that no pod saw is made good here. Anything else that
// is mounted there is ErrOtherVolume.
func (i *images) stage(ctx context.Context, image *os.File, spec volumes.Spec, at string) error {
	loop, err := loopdev.Attach(ctx, image, loopdev.ForFileSystem)
	if err != nil {
		return err
	}
	// From the mount on, that keeps the device.
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
	// A pod's mount may be left of an earlier one: what is mounted is not for fsck.
	if system.Access == mount.ReadWrite && len(table.Shows(loop.Device(), "/")) == 0 {
		if err := prepare(ctx, i.systems, system); err != nil {
			return err
		}
	}
	return mountSystem(ctx, i.mounter, i.systems, system, at)
}

// systemOn finds out what file system is to be mounted, and how.
func (i *images) systemOn(ctx context.Context, loop *loopdev.Loop, spec volumes.Spec) (mount.FileSystem, error) {
	found, err := i.systems.Probe(ctx, loop.Path())
	if err != nil {
		return mount.FileSystem{}, err
	}
	if found == "" {
		return mount.FileSystem{}, errors.New("the volume's image has no file system: it is never formatted when it is mounted, because it may hold data")
	}
	system := mount.FileSystem{Type: found, Source: loop.Path()}
	if isForReadersOnly(spec.PersistentVolume) {
		system.Access = mount.ReadOnly
	}
	setLabel(&system, i.owner, spec)
	err = setOptions(&system, spec.PersistentVolume.Spec.MountOptions)
	return system, err
}

// prepare mends a file system that is mounted nowhere, and makes it as large as its device
// if that is impossible later.
func prepare(ctx context.Context, systems filesystem.FileSystems, system mount.FileSystem) error {
	if err := systems.Check(ctx, system.Source, system.Type); err != nil {
		return err
	}
	err := systems.GrowBeforeMount(ctx, system.Source, system.Type)
	if err != nil && !errors.Is(err, device.ErrDamaged) {
		logGrowth(ctx, err, "growing a file system before it is mounted")
		return nil
	}
	return err
}

// logGrowth logs why a file system stays small. Data that a pod can't get at would be
// worse. An event of the claim has the reason, when the growth is tried again.
func logGrowth(ctx context.Context, err error, doing string) {
	logf.FromContext(ctx).Error(err, doing)
}

// mountSystem mounts a file system, and makes it as large as its device.
func mountSystem(ctx context.Context, mounter mount.Mounter, systems filesystem.FileSystems, system mount.FileSystem, at string) error {
	if err := os.Mkdir(at, mountPointMode); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the mount point: %w", err)
	}
	if err := mounter.FileSystem(system, at); err != nil {
		return err
	}
	if system.Access == mount.ReadWrite {
		if err := systems.Grow(ctx, system.Source, at, system.Type); err != nil {
			logGrowth(ctx, err, "growing a file system before pods see it")
		}
	}
	return nil
}

// isForReadersOnly says whether nobody may write a volume, whatever its pod says.
func isForReadersOnly(pv *corev1.PersistentVolume) bool { return volume.IsReadOnly(pv) }
