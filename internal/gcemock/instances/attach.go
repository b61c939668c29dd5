package instances

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// attachDisk attaches a disk to an instance.
type attachDisk struct {
	Instance   string
	InstanceID uint64 `json:",string"`
	Asked      state.Attachment
}

func newAttachDisk(r *wire.Request) (engine.Job, error) {
	var requested compute.AttachedDisk
	err := r.IntoServed(&requested, "autoDelete", "boot", "deviceName", "forceAttach", "initializeParams", "interface", "mode",
		"source", "type")
	if err != nil {
		return nil, err
	}
	return attachJob(r, r.Named("instances", "instance"), &requested)
}

func attachJob(r *wire.Request, instance string, requested *compute.AttachedDisk) (*attachDisk, error) {
	if err := refuseAttachment(r, requested); err != nil {
		return nil, err
	}
	row := state.Attachment{
		Instance: instance, Disk: wire.Reference(requested.Source, r.Project), DeviceName: requested.DeviceName,
		Mode: cmp.Or(requested.Mode, state.ReadWrite), Boot: requested.Boot, AutoDelete: requested.AutoDelete,
		Forced: isForced(r, requested),
	}
	switch {
	case row.Disk == "":
		return nil, wire.Invalid("resource.source", "", "A source is required.")
	case row.Mode != state.ReadWrite && row.Mode != state.ReadOnly:
		return nil, wire.Invalid("resource.mode", row.Mode, "Must be READ_WRITE or READ_ONLY.")
	case row.DeviceName != "" && !wire.DeviceName.MatchString(row.DeviceName):
		return nil, wire.Invalid("resource.deviceName", row.DeviceName, "Must be a match of regex '"+strings.Trim(wire.DeviceName.String(), "^$")+"'")
	case wire.ProjectOf(row.Disk) != wire.ProjectOf(instance) || wire.ZoneOf(row.Disk) != "" && wire.ZoneOf(row.Disk) != wire.ZoneOf(instance):
		return nil, wire.Invalid("resource.source", requested.Source, "Disk and instance must be in the same zone and project.")
	}
	return &attachDisk{Instance: instance, Asked: row}, nil
}

// refuseAttachment refuses attachments that this server does not serve, or Google.
func refuseAttachment(r *wire.Request, requested *compute.AttachedDisk) error {
	switch {
	case isForced(r, requested) && wire.Segment(wire.Reference(requested.Source, r.Project), "regions") == "":
		return wire.Invalid("forceAttach", "true", "Only regional disks can be attached by force.")
	case requested.DiskEncryptionKey != nil:
		return wire.NotServed("field diskEncryptionKey of attached disks")
	case requested.InitializeParams != nil:
		return wire.NotServed("field initializeParams of attached disks")
	case requested.Type != "" && requested.Type != "PERSISTENT":
		return wire.NotServed("disks of type " + requested.Type)
	case requested.Interface != "" && requested.Interface != state.SCSI:
		return wire.NotServed("interface " + requested.Interface)
	}
	return nil
}

func (j *attachDisk) Locks() []string { return []string{j.Instance, j.Asked.Disk} }

func (j *attachDisk) Accept(s *engine.Engine) (engine.Target, error) {
	instance, found := s.Instances.Get(j.Instance)
	if !found {
		return engine.Target{}, wire.NotFound(j.Instance)
	}
	if j.Asked.DeviceName == "" {
		j.Asked.DeviceName = freeDeviceName(s, j.Instance)
	}
	j.InstanceID, j.Asked.DiskID = instance.Id, s.Disks.Rows[j.Asked.Disk].Id
	return engine.Target{Path: j.Instance, ID: instance.Id}, checkAttachable(s, j.Asked, "")
}

// freeDeviceName is the name that Google gives a device that gets none.
func freeDeviceName(s *engine.Engine, instance string) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("persistent-disk-%d", i)
		if _, taken := s.Attachments.Get(state.AttachmentPath(instance, name)); !taken {
			return name
		}
	}
}

// checkAttachable reports why a disk can't be attached. It ignores what the operation has
// reserved itself.
func checkAttachable(s *engine.Engine, requested state.Attachment, operation string) error {
	instance, found := s.Instances.Get(requested.Instance)
	if !found {
		return wire.NotFound(requested.Instance)
	}
	if !slices.Contains([]string{state.StatusInstanceRunning, state.StatusTerminated, state.StatusProvisioning}, instance.Status) {
		return wire.NotReady(requested.Instance)
	}
	disk, err := s.SameDisk(requested.Disk, requested.DiskID)
	switch {
	case err != nil:
		return err
	case disk.Status != state.StatusReady:
		return wire.NotReady(requested.Disk)
	}
	if err := cmp.Or(checkReplicaZone(disk, instance), s.CheckKey(disk.DiskEncryptionKey)); err != nil {
		return err
	}
	if err := checkSharing(s, disk, requested, operation); err != nil {
		return err
	}
	if other, taken := s.Attachments.Get(requested.Path()); taken && (operation == "" || other.Taken != operation) {
		return wire.Invalid("resource.deviceName", requested.DeviceName, "The device name is already in use on the instance.")
	}
	return checkRoom(s, instance, requested, operation)
}

func checkRoom(s *engine.Engine, instance compute.Instance, requested state.Attachment, operation string) error {
	others := 0
	for _, row := range s.AttachedTo(requested.Instance) {
		if operation == "" || row.Taken != operation {
			others++
		}
	}
	if limit := machineOf(instance).maxDisks; others >= limit {
		return &wire.Error{
			Status: http.StatusForbidden, Reason: wire.ReasonLimit,
			Message: fmt.Sprintf("Exceeded limit 'maximum_persistent_disks' on resource '%s'. Limit: %d.0", instance.Name, limit),
		}
	}
	return nil
}

func (j *attachDisk) Begin(s *engine.Engine, operation string) error {
	if _, err := s.SameInstance(j.Instance, j.InstanceID); err != nil {
		return err
	}
	if err := checkAttachable(s, j.Asked, operation); err != nil {
		return err
	}
	if err := checkDiskType(s, j.Asked); err != nil {
		return err
	}
	reserved := j.Asked
	reserved.From = losers(s, j.Asked, operation)
	reserveAttachment(s, reserved, operation)
	return nil
}

// reserveAttachment reserves a disk for an operation. It survives a crash, so that no other
// operation gets the disk while the device may already be there.
func reserveAttachment(s *engine.Engine, requested state.Attachment, operation string) {
	requested.Taken = operation
	requested.Index = freeIndex(s, requested.Path(), requested.Instance)
	s.Attachments.Put(requested.Path(), requested)
}

func freeIndex(s *engine.Engine, path, instance string) int64 {
	used := map[int64]bool{}
	for _, row := range s.AttachedTo(instance) {
		if row.Path() != path {
			used[row.Index] = true
		}
	}
	for index := int64(0); ; index++ {
		if !used[index] {
			return index
		}
	}
}

func (j *attachDisk) Work(ctx context.Context, s *engine.Engine) error {
	s.Lock()
	device, powered := s.Device(j.Asked), s.IsPowered(j.Instance)
	taken := takenBy(s, j.Asked.Path())
	s.Unlock()
	if err := taken.unplug(ctx, s.Options.Attacher); err != nil || !powered {
		return err
	}
	if err := s.Options.Attacher.Attach(ctx, device); err != nil {
		if left := s.Options.Attacher.Detach(ctx, device); left != nil {
			return errors.Join(err, left) // no device comes back beside this one
		}
		return errors.Join(err, taken.plugAgain(ctx, s.Options.Attacher))
	}
	return nil
}

func (j *attachDisk) Finish(s *engine.Engine) {
	dropLosers(s, j.Asked.Path())
	finishAttachment(s, j.Asked.Path())
}

// finishAttachment makes an attachment one that clients see.
func finishAttachment(s *engine.Engine, path string) {
	row, _ := s.Attachments.Get(path)
	row.Taken, row.Forced, row.From = "", false, nil
	s.Attachments.Put(path, row)
	disk, _ := s.Disks.Get(row.Disk)
	disk.LastAttachTimestamp = s.Timestamp()
	s.Disks.Put(row.Disk, disk)
}

func (j *attachDisk) Undo(s *engine.Engine, _ string) {
	s.Attachments.Remove(j.Asked.Path())
}
