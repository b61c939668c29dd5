package gcemock

import (
	"context"
)

// detachDisk takes a disk from an instance, whatever the guest does with it.
type detachDisk struct {
	quick
	Instance, Device string
	// Disk is the one that was there when it was asked for.
	Disk   string
	DiskID uint64 `json:",string"`
}

func newDetachDisk(r *request) (job, error) {
	return &detachDisk{Instance: r.named("instances", "instance"), Device: r.URL.Query().Get("deviceName")}, nil
}

func (j *detachDisk) path() string { return attachmentPath(j.Instance, j.Device) }

func (j *detachDisk) Locks() []string { return []string{j.Instance, j.Disk} }

func (j *detachDisk) Accept(s *Engine) (target, error) {
	instance, found := s.instances.get(j.Instance)
	if !found {
		return target{}, errNotFound(j.Instance)
	}
	row, found := s.attachments.get(j.path())
	if !found || row.Taken != "" {
		return target{}, errNoDevice(j.Device)
	}
	j.Disk, j.DiskID = row.Disk, row.DiskID
	return target{path: j.Instance, id: instance.Id}, nil
}

func errNoDevice(device string) error {
	return errInvalid("disk", device, "No attached disk found with device name '"+device+"'")
}

func (j *detachDisk) Begin(s *Engine, _ string) error {
	if row, found := s.attachments.get(j.path()); !found || row.DiskID != j.DiskID {
		return errNoDevice(j.Device)
	}
	return nil
}

func (j *detachDisk) Work(ctx context.Context, s *Engine) error {
	s.Lock()
	device := s.device(s.attachments.rows[j.path()])
	s.Unlock()
	// Also on an instance that is stopped, where a start that failed may have left it.
	return s.options.Attacher.Detach(ctx, device)
}

func (j *detachDisk) Finish(s *Engine) { dropAttachment(s, j.path()) }

// dropAttachment makes a disk free again, as far as this instance goes.
func dropAttachment(s *Engine, path string) {
	row, _ := s.attachments.get(path)
	s.attachments.remove(path)
	if disk, found := s.disks.get(row.Disk); found {
		disk.LastDetachTimestamp = s.timestamp()
		s.disks.put(row.Disk, disk)
	}
}
