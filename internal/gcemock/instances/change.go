package instances

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// insertInstance makes an instance, with disks that exist.
type insertInstance struct {
	engine.Quick
	Instance compute.Instance
	Disks    []state.Attachment
}

func newInsertInstance(r *wire.Request) (engine.Job, error) {
	var requested compute.Instance
	if err := r.Into(&requested); err != nil {
		return nil, err
	}
	path := r.Scope() + "/instances/" + requested.Name
	made := &insertInstance{Instance: compute.Instance{
		Name: requested.Name, Description: requested.Description, Labels: requested.Labels, Metadata: requested.Metadata,
		MachineType: cmp.Or(wire.Reference(requested.MachineType, r.Project), r.Scope()+"/machineTypes/e2-standard-2"),
		Zone:        r.Scope(), SelfLink: path, Id: wire.NewID(), Status: state.StatusProvisioning,
		LabelFingerprint: wire.FingerprintOf(requested.Labels), Hostname: requested.Hostname,
	}}
	for _, disk := range requested.Disks {
		attach, err := attachJob(r, path, disk)
		if err != nil {
			return nil, err
		}
		if attach.Asked.Forced {
			return nil, wire.NotServed("forceAttach of the disks of new instances")
		}
		made.Disks = append(made.Disks, attach.Asked)
	}
	return made, nil
}

func (j *insertInstance) Locks() []string {
	return append([]string{j.Instance.SelfLink}, sortedDisks(j.Disks)...)
}

func (j *insertInstance) Accept(s *engine.Engine) (engine.Target, error) {
	path := j.Instance.SelfLink
	if err := wire.CheckName(j.Instance.Name); err != nil {
		return engine.Target{}, err
	}
	if err := wire.CheckLabels(j.Instance.Labels); err != nil {
		return engine.Target{}, err
	}
	if err := checkMachineType(j.Instance.MachineType, j.Instance.Zone); err != nil {
		return engine.Target{}, err
	}
	if _, found := s.Instances.Get(path); found {
		return engine.Target{}, wire.Exists(path)
	}
	for i := range j.Disks {
		j.Disks[i].DeviceName = cmp.Or(j.Disks[i].DeviceName, fmt.Sprintf("persistent-disk-%d", i))
		disk, err := s.FindReadyDisk(j.Disks[i].Disk)
		if err != nil {
			return engine.Target{}, err
		}
		j.Disks[i].DiskID = disk.Id
	}
	j.Instance.CreationTimestamp = s.Timestamp()
	s.Instances.Put(path, j.Instance)
	return engine.Target{Path: path, ID: j.Instance.Id}, nil
}

func (j *insertInstance) Work(ctx context.Context, s *engine.Engine) error {
	for _, disk := range j.Disks {
		err := s.Update(func() error {
			// The instance is new, and under this job's lock: what is there is its own.
			if _, found := s.Attachments.Get(disk.Path()); found {
				return nil
			}
			if err := checkAttachable(s, disk, ""); err != nil {
				return err
			}
			if err := checkDiskType(s, disk); err != nil {
				return err
			}
			reserveAttachment(s, disk, j.Instance.SelfLink)
			return nil
		})
		if err != nil {
			return err
		}
	}
	err := s.PlugAll(ctx, j.Instance.SelfLink)
	if err != nil {
		return errors.Join(err, s.UnplugAll(ctx, j.Instance.SelfLink))
	}
	return nil
}

func (j *insertInstance) Finish(s *engine.Engine) {
	for _, disk := range j.Disks {
		finishAttachment(s, disk.Path())
	}
	setStatus(s, j.Instance.SelfLink, state.StatusInstanceRunning)
}

func (j *insertInstance) Undo(s *engine.Engine, _ string) {
	for _, row := range s.AttachedTo(j.Instance.SelfLink) {
		s.Attachments.Remove(row.Path())
	}
	s.Instances.Remove(j.Instance.SelfLink)
}

// deleteInstance removes an instance, and with it the disks that go with it.
type deleteInstance struct {
	Path string
	ID   uint64 `json:",string"`
	// Before is its status when it began.
	Before string
}

func newDeleteInstance(r *wire.Request) (engine.Job, error) {
	return &deleteInstance{Path: r.Named("instances", "instance")}, nil
}

func (j *deleteInstance) Locks() []string { return []string{j.Path} }

func (j *deleteInstance) Accept(s *engine.Engine) (engine.Target, error) {
	row, err := s.FindInstance(j.Path)
	j.ID, j.Before = row.Id, row.Status
	return engine.Target{Path: j.Path, ID: row.Id}, err
}

func (j *deleteInstance) Begin(s *engine.Engine, _ string) error {
	row, err := s.SameInstance(j.Path, j.ID)
	if err != nil {
		return err
	}
	j.Before = settled(row.Status, j.Before)
	setStatus(s, j.Path, state.StatusStopping)
	return nil
}

func (j *deleteInstance) Work(ctx context.Context, s *engine.Engine) error {
	if j.Before != state.StatusInstanceRunning {
		return s.UnplugAll(ctx, j.Path)
	}
	return s.PowerOff(ctx, j.Path)
}

func (j *deleteInstance) Finish(s *engine.Engine) {
	for _, row := range s.AttachedTo(j.Path) {
		dropAttachment(s, row.Path())
		disk, found := s.Disks.Get(row.Disk)
		if !row.AutoDelete || !found || s.RefuseUsers(row.Disk) != nil {
			continue // it stays, also while another instance reads it
		}
		s.Disks.Remove(row.Disk)
		s.DropInstants(disk.Id)
		s.RemoveContent(disk.Id, row.Disk)
	}
	s.Instances.Remove(j.Path)
}

func (j *deleteInstance) Undo(s *engine.Engine, _ string) { setStatus(s, j.Path, j.Before) }
