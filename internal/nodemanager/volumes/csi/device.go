package csi

import (
	"context"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

var errNoDevice = fmt.Errorf("a volume that is a directory can't be a device: use layout Image for volumeMode Block: %w", volumes.ErrNotSupported)

// DevicePlugin is the volume type for volumes that pods see as block devices. Its
// zero value isn't usable: see NewDevices.
type DevicePlugin struct{ sources }

var _ volumes.Grower = DevicePlugin{}

// NewDevices returns the volume type.
func NewDevices(images *Images, drivers Drivers) DevicePlugin {
	return DevicePlugin{sources{images: images, drivers: drivers}}
}

// WithDisks returns a volume type that serves disks, too.
func (p DevicePlugin) WithDisks(disks *Disks) DevicePlugin {
	p.disks = disks
	return p
}

// CanHandle implements volumes.Plugin.
func (p DevicePlugin) CanHandle(spec volumes.Spec) bool { return spec.IsBlock() && p.has(spec) }

// Path implements volumes.Plugin.
func (DevicePlugin) Path(path string) string { return path }

// IsPublished implements volumes.Plugin. A loop device that somebody took away may
// show something else by now.
func (p DevicePlugin) IsPublished(table mount.Table, spec volumes.Spec, path string) (bool, error) {
	if !table.IsMountPoint(path) {
		return false, nil
	}
	if p.disks.Serves(spec.PersistentVolume) {
		return p.disks.isShown(table, spec)
	}
	place := p.images.at(spec.Name())
	if !table.IsMountPoint(place.image()) {
		// Somebody took the note away.
		return false, nil
	}
	if err := place.check(table); err != nil {
		return true, err
	}
	return true, place.checkDevice(path)
}

// Publish implements volumes.Plugin.
func (p DevicePlugin) Publish(ctx context.Context, spec volumes.Spec, path string) error {
	if p.disks.Serves(spec.PersistentVolume) {
		// First, so that whatever a crash leaves of the rest is found by Unpublish.
		if err := volumes.EnsureFile(path); err != nil {
			return err
		}
		return p.disks.publishDevice(ctx, spec, path)
	}
	source, err := p.drivers.open(ctx, spec.PersistentVolume)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return errNoDevice
	}
	// First, so that whatever a crash leaves of the rest is found by Unpublish.
	if err := volumes.EnsureFile(path); err != nil {
		return err
	}
	return p.images.publishDevice(ctx, source, spec, path)
}

// Unpublish implements volumes.Plugin.
func (p DevicePlugin) Unpublish(ctx context.Context, path string) error {
	if err := p.images.noteAgain(filepath.Base(path), path); err != nil {
		return err
	}
	if err := p.takeFromPod(ctx, path); err != nil {
		return err
	}
	return volumes.UnbindFile(p.images.mounter, path)
}

// CanGrow implements volumes.Grower.
func (p DevicePlugin) CanGrow(table mount.Table, volume *corev1.PersistentVolume) bool {
	if p.disks.Serves(volume) {
		return p.disks.canGrow(table, volume.Name)
	}
	return table.IsMountPoint(p.images.at(volume.Name).image())
}
