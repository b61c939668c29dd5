package gcemock

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/api/compute/v1"
)

// insertInstance makes an instance, with disks that exist.
type insertInstance struct {
	quick
	Instance compute.Instance
	Disks    []attachment
}

func newInsertInstance(r *request) (job, error) {
	var asked compute.Instance
	if err := r.into(&asked); err != nil {
		return nil, err
	}
	path := r.scope() + "/instances/" + asked.Name
	made := &insertInstance{Instance: compute.Instance{
		Name: asked.Name, Description: asked.Description, Labels: asked.Labels, Metadata: asked.Metadata,
		MachineType: cmp.Or(reference(asked.MachineType, r.project), r.scope()+"/machineTypes/e2-standard-2"),
		Zone:        r.scope(), SelfLink: path, Id: newID(), Status: statusProvisioning,
		LabelFingerprint: fingerprintOf(asked.Labels), Hostname: asked.Hostname,
	}}
	for _, disk := range asked.Disks {
		attach, err := attachJob(r, path, disk)
		if err != nil {
			return nil, err
		}
		made.Disks = append(made.Disks, attach.Asked)
	}
	return made, nil
}

func (j *insertInstance) Locks() []string {
	return append([]string{j.Instance.SelfLink}, sortedDisks(j.Disks)...)
}

func (j *insertInstance) Accept(s *Engine) (target, error) {
	path := j.Instance.SelfLink
	if err := checkName(j.Instance.Name); err != nil {
		return target{}, err
	}
	if err := checkLabels(j.Instance.Labels); err != nil {
		return target{}, err
	}
	if err := checkMachineType(j.Instance.MachineType, j.Instance.Zone); err != nil {
		return target{}, err
	}
	if _, found := s.instances.get(path); found {
		return target{}, errExists(path)
	}
	for i := range j.Disks {
		j.Disks[i].DeviceName = cmp.Or(j.Disks[i].DeviceName, fmt.Sprintf("persistent-disk-%d", i))
		disk, err := s.findReadyDisk(j.Disks[i].Disk)
		if err != nil {
			return target{}, err
		}
		j.Disks[i].DiskID = disk.Id
	}
	j.Instance.CreationTimestamp = s.timestamp()
	s.instances.put(path, j.Instance)
	return target{path: path, id: j.Instance.Id}, nil
}

func (j *insertInstance) Work(ctx context.Context, s *Engine) error {
	for _, disk := range j.Disks {
		err := s.update(func() error {
			// The instance is new, and under this job's lock: what is there is its own.
			if _, found := s.attachments.get(disk.path()); found {
				return nil
			}
			if err := checkAttachable(s, disk, ""); err != nil {
				return err
			}
			if err := checkTakes(s, disk); err != nil {
				return err
			}
			takeAttachment(s, disk, j.Instance.SelfLink)
			return nil
		})
		if err != nil {
			return err
		}
	}
	err := s.plugAll(ctx, j.Instance.SelfLink)
	if err != nil {
		return errors.Join(err, s.unplugAll(ctx, j.Instance.SelfLink))
	}
	return nil
}

func (j *insertInstance) Finish(s *Engine) {
	for _, disk := range j.Disks {
		finishAttachment(s, disk.path())
	}
	setStatus(s, j.Instance.SelfLink, statusInstanceRunning)
}

func (j *insertInstance) Undo(s *Engine, _ string) {
	for _, row := range s.attachedTo(j.Instance.SelfLink) {
		s.attachments.remove(row.path())
	}
	s.instances.remove(j.Instance.SelfLink)
}

// deleteInstance removes an instance, and with it the disks that go with it.
type deleteInstance struct {
	Path string
	ID   uint64 `json:",string"`
	// Before is its status when it began.
	Before string
}

func newDeleteInstance(r *request) (job, error) {
	return &deleteInstance{Path: r.named("instances", "instance")}, nil
}

func (j *deleteInstance) Locks() []string { return []string{j.Path} }

func (j *deleteInstance) Accept(s *Engine) (target, error) {
	row, err := s.findInstance(j.Path)
	j.ID, j.Before = row.Id, row.Status
	return target{path: j.Path, id: row.Id}, err
}

func (j *deleteInstance) Begin(s *Engine, _ string) error {
	row, err := s.sameInstance(j.Path, j.ID)
	if err != nil {
		return err
	}
	j.Before = settled(row.Status, j.Before)
	setStatus(s, j.Path, statusStopping)
	return nil
}

func (j *deleteInstance) Work(ctx context.Context, s *Engine) error {
	if j.Before != statusInstanceRunning {
		return s.unplugAll(ctx, j.Path)
	}
	return s.powerOff(ctx, j.Path)
}

func (j *deleteInstance) Finish(s *Engine) {
	for _, row := range s.attachedTo(j.Path) {
		dropAttachment(s, row.path())
		disk, found := s.disks.get(row.Disk)
		if !row.AutoDelete || !found || s.refuseUsers(row.Disk) != nil {
			continue // it stays, also while another instance reads it
		}
		s.disks.remove(row.Disk)
		s.dropInstants(disk.Id)
		s.removeContent(disk.Id, row.Disk)
	}
	s.instances.remove(j.Path)
}

func (j *deleteInstance) Undo(s *Engine, _ string) { setStatus(s, j.Path, j.Before) }
