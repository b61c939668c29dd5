package csi

import (
	"context"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/foreign"
)

// DevicePlugin is the volume type for volumes that pods see as block devices. Its zero value
// isn't usable: see NewDevices.
type DevicePlugin struct{ sources }

var (
	_ volumes.Dependent = DevicePlugin{}
	_ volumes.Grower    = DevicePlugin{}
	_ volumes.Measurer  = DevicePlugin{}
	_ volumes.Queuer    = DevicePlugin{}
)

// NewDevices returns the volume type for volumes that pods see as block devices.
func NewDevices(caller *Caller) DevicePlugin { return DevicePlugin{sources{caller: caller}} }

// CanHandle implements volumes.Plugin. A directory of a server can't be a device.
func (p DevicePlugin) CanHandle(spec volumes.Spec) bool {
	return spec.IsBlock() && p.caller.serves(spec) && !p.caller.isRemote(foreign.DriverOf(spec))
}

// Path implements volumes.Plugin. The device of a driver of another project lies elsewhere, as with a
// kubelet.
func (p DevicePlugin) Path(path string) string {
	if at := p.caller.foreign.DeviceTarget(path); foreign.IsLinked(at) {
		return at.Path
	}
	return path
}

// Queue implements volumes.Queuer.
func (p DevicePlugin) Queue(spec volumes.Spec, path string) string {
	return p.caller.queueOf(spec, p.caller.Device(path))
}

// Missing implements volumes.Dependent.
func (p DevicePlugin) Missing(spec volumes.Spec, path string) error {
	return p.caller.foreign.Missing(spec, p.caller.Device(path))
}

// Measure implements volumes.Measurer.
func (p DevicePlugin) Measure(ctx context.Context, spec volumes.Spec, path string) (volumes.Usage, error) {
	return p.caller.foreign.Usage(ctx, spec, p.caller.foreign.DeviceTarget(path))
}

// IsPublished implements volumes.Plugin. A loop device that was detached from outside Stowage may
// show something else by now.
func (p DevicePlugin) IsPublished(table mount.Table, spec volumes.Spec, path string) (bool, error) {
	if foreign.Is(foreign.DriverOf(spec)) {
		return p.caller.foreign.IsPublished(table, spec, p.caller.foreign.DeviceTarget(path))
	}
	return p.caller.isPublished(table, spec, p.caller.Device(path))
}

// Publish implements volumes.Plugin.
func (p DevicePlugin) Publish(ctx context.Context, spec volumes.Spec, path string) error {
	if foreign.Is(foreign.DriverOf(spec)) {
		return p.caller.foreign.PublishDevice(ctx, spec, p.caller.foreign.DeviceTarget(path))
	}
	// First, so that Unpublish finds whatever a crash leaves of the rest.
	if err := volumes.EnsureFile(path); err != nil {
		return err
	}
	return p.caller.publish(ctx, spec, p.caller.Device(path))
}

// Unpublish implements volumes.Plugin.
func (p DevicePlugin) Unpublish(ctx context.Context, path string) error {
	at := p.caller.Device(path)
	if linked := p.caller.foreign.DeviceTarget(path); foreign.IsLinked(linked) {
		return p.caller.foreign.UnpublishDevice(ctx, linked)
	}
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
	if err := at.Forget(); err != nil {
		return err
	}
	return volumes.UnbindFile(p.caller.mounter, path)
}
