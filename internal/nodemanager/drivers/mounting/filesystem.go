package mounting

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Prepare mends a file system that is mounted nowhere, and makes it as large as its device
// if that is impossible later.
func Prepare(ctx context.Context, systems filesystem.FileSystems, system mount.FileSystem) error {
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

// MountSystem mounts a file system, and makes it as large as its device.
func MountSystem(ctx context.Context, mounter mount.Mounter, systems filesystem.FileSystems, system mount.FileSystem, at string) error {
	if err := os.Mkdir(at, MountPointMode); err != nil && !errors.Is(err, os.ErrExist) {
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

// GrowSystem grows the file system on a device, if one is mounted.
func GrowSystem(ctx context.Context, mounter mount.Mounter, systems filesystem.FileSystems, path, at string) error {
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(at)
	if !mounted {
		return nil
	}
	err = systems.Grow(ctx, path, at, staged.FSType)
	if errors.Is(err, device.ErrUnknownType) {
		return fmt.Errorf("%w: %w", err, volumes.ErrNotSupported)
	}
	return err
}

// SetLabel has a file system that one pod alone can use mounted with the SELinux label of
// that pod.
func SetLabel(system *mount.FileSystem, owner ownership.Owner, spec volumes.Spec) {
	label := owner.LabelForOne(spec.Pod, spec.Volume.Name, spec.PersistentVolume)
	system.Settings = append(system.Settings, ownership.LabelSettings(label)...)
}

// IsForReadersOnly says whether nobody may write a volume, whatever its pod says.
func IsForReadersOnly(pv *corev1.PersistentVolume) bool { return volume.IsReadOnly(pv) }

// SystemAccess is what may be done with a file system that a volume has mounted.
func SystemAccess(volume *corev1.PersistentVolume) mount.Access {
	if IsForReadersOnly(volume) || slices.Contains(volume.Spec.MountOptions, "ro") {
		return mount.ReadOnly
	}
	return mount.ReadWrite
}
