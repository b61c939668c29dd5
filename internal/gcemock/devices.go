package gcemock

import (
	"context"
	"errors"

	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

// device is what the guest is to see of an attachment.
func (s *Engine) device(row attachment) hotplug.Device {
	disk := s.disks.rows[row.Disk]
	return hotplug.Device{
		Project: projectOf(row.Instance), Zone: zoneOf(row.Instance), Instance: baseName(row.Instance),
		Name: row.DeviceName, Image: s.contents.path(disk.Id), ReadOnly: row.Mode == readOnly,
	}
}

// devicesOf are the devices that show a disk now, or are about to.
func (s *Engine) devicesOf(disk string) []hotplug.Device {
	var devices []hotplug.Device
	for _, row := range s.attachmentsOf(disk) {
		if s.isPowered(row.Instance) {
			devices = append(devices, s.device(row))
		}
	}
	return devices
}

// plugAll makes all devices of an instance appear.
func (s *Engine) plugAll(ctx context.Context, instance string) error {
	return s.plug(ctx, s.devicesAt(instance))
}

func (s *Engine) plug(ctx context.Context, devices []hotplug.Device) error {
	for _, device := range devices {
		if err := s.options.Attacher.Attach(ctx, device); err != nil {
			return err
		}
	}
	return nil
}

// unplugAll takes all devices of an instance away, as far as they can be.
func (s *Engine) unplugAll(ctx context.Context, instance string) error {
	var failed error
	for _, device := range s.devicesAt(instance) {
		failed = errors.Join(failed, s.options.Attacher.Detach(ctx, device))
	}
	return failed
}

// powerOff takes all devices of an instance away, or none.
func (s *Engine) powerOff(ctx context.Context, instance string) error {
	err := s.unplugAll(ctx, instance)
	if err != nil {
		return errors.Join(err, s.plugAll(ctx, instance))
	}
	return nil
}

func (s *Engine) devicesAt(instance string) []hotplug.Device {
	s.Lock()
	defer s.Unlock()
	var devices []hotplug.Device
	for _, row := range s.attachedTo(instance) {
		devices = append(devices, s.device(row))
	}
	return devices
}

// restoreDevices makes the devices of running instances appear again, which a restart
// of the machine took away. What can't is said and left: a guest may not run yet. Those
// of attachments under way come with their operation, unless that is to end in error.
func (s *Engine) restoreDevices(ctx context.Context) {
	for path, row := range s.instances.rows {
		if row.Status != statusInstanceRunning {
			continue
		}
		var devices []hotplug.Device
		for _, attached := range s.attachedTo(path) {
			if attached.Taken == "" {
				devices = append(devices, s.device(attached))
			}
		}
		if err := s.plug(ctx, devices); err != nil {
			s.options.Log.Error(err, "devices are missing on an instance", "instance", path)
		}
	}
}
