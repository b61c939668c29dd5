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
	var asked compute.AttachedDisk
	err := r.IntoServed(&asked, "autoDelete", "boot", "deviceName", "forceAttach", "initializeParams", "interface", "mode",
		"source", "type")
	if err != nil {
		return nil, err
	}
	return attachJob(r, r.Named("instances", "instance"), &asked)
}

func attachJob(r *wire.Request, instance string, asked *compute.AttachedDisk) (*attachDisk, error) {
	if err := refuseAttachment(r, asked); err != nil {
		return nil, err
	}
	row := state.Attachment{
		Instance: instance, Disk: wire.Reference(asked.Source, r.Project), DeviceName: asked.DeviceName,
		Mode: cmp.Or(asked.Mode, state.ReadWrite), Boot: asked.Boot, AutoDelete: asked.AutoDelete,
	}
	switch {
	case row.Disk == "":
		return nil, wire.Invalid("resource.source", "", "A source is required.")
	case row.Mode != state.ReadWrite && row.Mode != state.ReadOnly:
		return nil, wire.Invalid("resource.mode", row.Mode, "Must be READ_WRITE or READ_ONLY.")
	case row.DeviceName != "" && !wire.DeviceName.MatchString(row.DeviceName):
		return nil, wire.Invalid("resource.deviceName", row.DeviceName, "Must be a match of regex '"+strings.Trim(wire.DeviceName.String(), "^$")+"'")
	case wire.ProjectOf(row.Disk) != wire.ProjectOf(instance) || wire.ZoneOf(row.Disk) != "" && wire.ZoneOf(row.Disk) != wire.ZoneOf(instance):
		return nil, wire.Invalid("resource.source", asked.Source, "Disk and instance must be in the same zone and project.")
	}
	return &attachDisk{Instance: instance, Asked: row}, nil
}

// refuseAttachment refuses attachments that this server does not serve, or Google.
func refuseAttachment(r *wire.Request, asked *compute.AttachedDisk) error {
	isForced := r.URL.Query().Get("forceAttach") == "true" || asked.ForceAttach
	switch {
	case isForced && wire.Segment(wire.Reference(asked.Source, r.Project), "regions") != "":
		return wire.NotServed("forceAttach")
	case isForced:
		return wire.Invalid("forceAttach", "true", "Only regional disks can be attached by force.")
	case asked.DiskEncryptionKey != nil:
		return wire.NotServed("field diskEncryptionKey of attached disks")
	case asked.InitializeParams != nil:
		return wire.NotServed("field initializeParams of attached disks")
	case asked.Type != "" && asked.Type != "PERSISTENT":
		return wire.NotServed("disks of type " + asked.Type)
	case asked.Interface != "" && asked.Interface != state.SCSI:
		return wire.NotServed("interface " + asked.Interface)
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

// checkAttachable reports whether a disk can be attached, but for what an operation has
// taken itself.
func checkAttachable(s *engine.Engine, asked state.Attachment, operation string) error {
	instance, found := s.Instances.Get(asked.Instance)
	if !found {
		return wire.NotFound(asked.Instance)
	}
	if !slices.Contains([]string{state.StatusInstanceRunning, state.StatusTerminated, state.StatusProvisioning}, instance.Status) {
		return wire.NotReady(asked.Instance)
	}
	disk, err := s.SameDisk(asked.Disk, asked.DiskID)
	switch {
	case err != nil:
		return err
	case disk.Status != state.StatusReady:
		return wire.NotReady(asked.Disk)
	}
	if err := checkReplicaZone(disk, instance); err != nil {
		return err
	}
	if err := checkSharing(s, disk, asked, operation); err != nil {
		return err
	}
	if other, taken := s.Attachments.Get(asked.Path()); taken && (operation == "" || other.Taken != operation) {
		return wire.Invalid("resource.deviceName", asked.DeviceName, "The device name is already in use on the instance.")
	}
	return checkRoom(s, instance, asked, operation)
}

func checkRoom(s *engine.Engine, instance compute.Instance, asked state.Attachment, operation string) error {
	others := 0
	for _, row := range s.AttachedTo(asked.Instance) {
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
	reserveAttachment(s, j.Asked, operation)
	return nil
}

// takeAttachment keeps a disk for an operation. A crash before it is done leaves that
// known, so that no other gets the disk while the device may already be there.
func reserveAttachment(s *engine.Engine, asked state.Attachment, operation string) {
	asked.Taken = operation
	asked.Index = freeIndex(s, asked.Path(), asked.Instance)
	s.Attachments.Put(asked.Path(), asked)
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
	s.Unlock()
	if !powered {
		return nil
	}
	if err := s.Options.Attacher.Attach(ctx, device); err != nil {
		return errors.Join(err, s.Options.Attacher.Detach(ctx, device))
	}
	return nil
}

func (j *attachDisk) Finish(s *engine.Engine) { finishAttachment(s, j.Asked.Path()) }

// finishAttachment makes an attachment one that clients see.
func finishAttachment(s *engine.Engine, path string) {
	row, _ := s.Attachments.Get(path)
	row.Taken = ""
	s.Attachments.Put(path, row)
	disk, _ := s.Disks.Get(row.Disk)
	disk.LastAttachTimestamp = s.Timestamp()
	s.Disks.Put(row.Disk, disk)
}

func (j *attachDisk) Undo(s *engine.Engine, _ string) {
	s.Attachments.Remove(j.Asked.Path())
}
