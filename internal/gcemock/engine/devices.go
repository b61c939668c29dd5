package engine

import (
	"context"
	"errors"

	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// Device is what the guest is to see of an attachment.
func (s *Engine) Device(row state.Attachment) hotplug.Device {
	disk := s.Disks.Rows[row.Disk]
	return hotplug.Device{
		Project: wire.ProjectOf(row.Instance), Zone: wire.ZoneOf(row.Instance), Instance: wire.BaseName(row.Instance),
		Name: row.DeviceName, Image: s.Contents.Path(disk.Id), ReadOnly: row.Mode == state.ReadOnly,
		Shared: disk.AccessMode == state.AccessMany,
	}
}

// DevicesOf are the devices that show a disk now, or are about to.
func (s *Engine) DevicesOf(disk string) []hotplug.Device {
	var devices []hotplug.Device
	for _, row := range s.AttachmentsOf(disk) {
		if s.IsPowered(row.Instance) {
			devices = append(devices, s.Device(row))
		}
	}
	return devices
}

// PlugAll makes all devices of an instance appear, but for those of disks that an operation moves
// from or to it. Such an operation was interrupted, and goes on later.
func (s *Engine) PlugAll(ctx context.Context, instance string) error {
	return s.plug(ctx, s.devicesAt(instance, func(row state.Attachment) bool {
		return len(row.From) == 0 && !s.IsBeingTaken(row)
	}))
}

func (s *Engine) plug(ctx context.Context, devices []hotplug.Device) error {
	for _, device := range devices {
		if err := s.Options.Attacher.Attach(ctx, device); err != nil {
			return err
		}
	}
	return nil
}

// UnplugAll takes all devices of an instance away, as far as they can be.
func (s *Engine) UnplugAll(ctx context.Context, instance string) error {
	var failed error
	for _, device := range s.devicesAt(instance, func(state.Attachment) bool { return true }) {
		failed = errors.Join(failed, s.Options.Attacher.Detach(ctx, device))
	}
	return failed
}

// PowerOff takes all devices of an instance away, or none.
func (s *Engine) PowerOff(ctx context.Context, instance string) error {
	err := s.UnplugAll(ctx, instance)
	if err != nil {
		return errors.Join(err, s.PlugAll(ctx, instance))
	}
	return nil
}

func (s *Engine) devicesAt(instance string, isMeant func(state.Attachment) bool) []hotplug.Device {
	s.Lock()
	defer s.Unlock()
	var devices []hotplug.Device
	for _, row := range s.AttachedTo(instance) {
		if isMeant(row) {
			devices = append(devices, s.Device(row))
		}
	}
	return devices
}

// restoreDevices makes the devices of running instances appear again, which a restart
// of the machine took away. What can't is said and left: a guest may not run yet. Those
// of attachments under way come with their operation, unless that is to end in error.
func (s *Engine) restoreDevices(ctx context.Context) {
	for path, row := range s.Instances.Rows {
		if row.Status != state.StatusInstanceRunning {
			continue
		}
		var devices []hotplug.Device
		for _, attached := range s.AttachedTo(path) {
			if attached.Taken == "" && !s.IsBeingTaken(attached) {
				devices = append(devices, s.Device(attached))
			}
		}
		if err := s.plug(ctx, devices); err != nil {
			s.Options.Log.Error(err, "devices are missing on an instance", "instance", path)
		}
	}
}
