package instances

import (
	"context"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// detachDisk detaches a disk from an instance, whatever the guest does with it.
type detachDisk struct {
	engine.Quick
	Instance, Device string
	// Disk is the one that was attached when the call was accepted.
	Disk   string
	DiskID uint64 `json:",string"`
}

func newDetachDisk(r *wire.Request) (engine.Job, error) {
	return &detachDisk{Instance: r.Named("instances", "instance"), Device: r.URL.Query().Get("deviceName")}, nil
}

func (j *detachDisk) path() string { return state.AttachmentPath(j.Instance, j.Device) }

func (j *detachDisk) Locks() []string { return []string{j.Instance, j.Disk} }

func (j *detachDisk) Accept(s *engine.Engine) (engine.Target, error) {
	instance, found := s.Instances.Get(j.Instance)
	if !found {
		return engine.Target{}, wire.NotFound(j.Instance)
	}
	row, found := s.Attachments.Get(j.path())
	if !found || row.Taken != "" {
		return engine.Target{}, errNoDevice(j.Device)
	}
	j.Disk, j.DiskID = row.Disk, row.DiskID
	return engine.Target{Path: j.Instance, ID: instance.Id}, nil
}

func errNoDevice(device string) error {
	return wire.Invalid("disk", device, "No attached disk found with device name '"+device+"'")
}

func (j *detachDisk) Begin(s *engine.Engine, _ string) error {
	if row, found := s.Attachments.Get(j.path()); !found || row.DiskID != j.DiskID {
		return errNoDevice(j.Device)
	}
	return nil
}

func (j *detachDisk) Work(ctx context.Context, s *engine.Engine) error {
	s.Lock()
	device := s.Device(s.Attachments.Rows[j.path()])
	s.Unlock()
	// Also on an instance that is stopped, where a start that failed may have left it.
	return s.Options.Attacher.Detach(ctx, device)
}

func (j *detachDisk) Finish(s *engine.Engine) { dropAttachment(s, j.path()) }

// dropAttachment removes an attachment from its instance and its disk.
func dropAttachment(s *engine.Engine, path string) {
	row, _ := s.Attachments.Get(path)
	s.Attachments.Remove(path)
	if disk, found := s.Disks.Get(row.Disk); found {
		disk.LastDetachTimestamp = s.Timestamp()
		s.Disks.Put(row.Disk, disk)
	}
}
