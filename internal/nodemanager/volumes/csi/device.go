package csi

import (
	"context"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// DevicePlugin is the volume type for volumes that pods see as block devices. Its zero value
// isn't usable: see NewDevices.
type DevicePlugin struct{ sources }

var _ volumes.Grower = DevicePlugin{}

// NewDevices returns the volume type for volumes that pods see as block devices.
func NewDevices(caller *Caller) DevicePlugin { return DevicePlugin{sources{caller: caller}} }

// CanHandle implements volumes.Plugin. A directory of a server can't be a device.
func (p DevicePlugin) CanHandle(spec volumes.Spec) bool {
	return spec.IsBlock() && p.caller.serves(spec.PersistentVolume) && !p.caller.isRemote(spec.PersistentVolume.Spec.CSI.Driver)
}

// Path implements volumes.Plugin.
func (DevicePlugin) Path(path string) string { return path }

// IsPublished implements volumes.Plugin. A loop device that was detached from outside Stowage may
// show something else by now.
func (p DevicePlugin) IsPublished(table mount.Table, spec volumes.Spec, path string) (bool, error) {
	return p.caller.isPublished(table, spec, p.caller.deviceTarget(path))
}

// Publish implements volumes.Plugin.
func (p DevicePlugin) Publish(ctx context.Context, spec volumes.Spec, path string) error {
	// First, so that Unpublish finds whatever a crash leaves of the rest.
	if err := volumes.EnsureFile(path); err != nil {
		return err
	}
	return p.caller.publish(ctx, spec, p.caller.deviceTarget(path))
}

// Unpublish implements volumes.Plugin.
func (p DevicePlugin) Unpublish(ctx context.Context, path string) error {
	at := p.caller.deviceTarget(path)
	data, err := p.caller.dataAt(at, filepath.Base(path))
	if err != nil {
		return err
	}
	if data != nil {
		return p.caller.unpublishDevice(ctx, *data, at)
	}
	if err := p.takeFromPod(ctx, path); err != nil {
		return err
	}
	if err := p.caller.forget(at); err != nil {
		return err
	}
	return volumes.UnbindFile(p.caller.mounter, path)
}
