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

// Prepare repairs a file system that isn't mounted anywhere. It grows it to the size of its
// device if that is impossible once it is mounted.
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

// logGrowth logs why a file system stays small. Without its data, the pod would be worse off.
// When the growth is tried again, an event of the claim has the reason.
func logGrowth(ctx context.Context, err error, doing string) {
	logf.FromContext(ctx).Error(err, doing)
}

// MountSystem mounts a file system, and grows it to the size of its device.
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

// GrowSystem grows the file system on a device, if it is mounted.
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

// SetLabel has a file system that one pod alone can use mounted with the SELinux label of that
// pod.
func SetLabel(system *mount.FileSystem, owner ownership.Owner, spec volumes.Spec) {
	label := owner.LabelForOne(spec.Pod, spec.Volume.Name, spec.PersistentVolume)
	system.Settings = append(system.Settings, ownership.LabelSettings(label)...)
}

// IsForReadersOnly reports whether no pod may write a volume, whatever its spec says.
func IsForReadersOnly(pv *corev1.PersistentVolume) bool { return volume.IsReadOnly(pv) }

// SystemAccess returns the access with which a volume's file system is mounted.
func SystemAccess(volume *corev1.PersistentVolume) mount.Access {
	if IsForReadersOnly(volume) || slices.Contains(volume.Spec.MountOptions, "ro") {
		return mount.ReadOnly
	}
	return mount.ReadWrite
}
