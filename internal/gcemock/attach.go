package gcemock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
)

// attachDisk attaches a disk to an instance.
type attachDisk struct {
	Instance   string
	InstanceID uint64 `json:",string"`
	Asked      attachment
}

func newAttachDisk(r *request) (job, error) {
	var asked compute.AttachedDisk
	err := r.intoServed(&asked, "autoDelete", "boot", "deviceName", "forceAttach", "initializeParams", "interface", "mode",
		"source", "type")
	if err != nil {
		return nil, err
	}
	return attachJob(r, r.named("instances", "instance"), &asked)
}

func attachJob(r *request, instance string, asked *compute.AttachedDisk) (*attachDisk, error) {
	if err := refuseAttachment(r, asked); err != nil {
		return nil, err
	}
	row := attachment{
		Instance: instance, Disk: reference(asked.Source, r.project), DeviceName: asked.DeviceName,
		Mode: cmp.Or(asked.Mode, readWrite), Boot: asked.Boot, AutoDelete: asked.AutoDelete,
	}
	switch {
	case row.Disk == "":
		return nil, errInvalid("resource.source", "", "A source is required.")
	case row.Mode != readWrite && row.Mode != readOnly:
		return nil, errInvalid("resource.mode", row.Mode, "Must be READ_WRITE or READ_ONLY.")
	case row.DeviceName != "" && !deviceName.MatchString(row.DeviceName):
		return nil, errInvalid("resource.deviceName", row.DeviceName, "Must be a match of regex '"+strings.Trim(deviceName.String(), "^$")+"'")
	case projectOf(row.Disk) != projectOf(instance) || zoneOf(row.Disk) != "" && zoneOf(row.Disk) != zoneOf(instance):
		return nil, errInvalid("resource.source", asked.Source, "Disk and instance must be in the same zone and project.")
	}
	return &attachDisk{Instance: instance, Asked: row}, nil
}

// refuseAttachment refuses attachments that this server does not serve, or Google.
func refuseAttachment(r *request, asked *compute.AttachedDisk) error {
	isForced := r.URL.Query().Get("forceAttach") == "true" || asked.ForceAttach
	switch {
	case isForced && segment(reference(asked.Source, r.project), "regions") != "":
		return errNotServed("forceAttach")
	case isForced:
		return errInvalid("forceAttach", "true", "Only regional disks can be attached by force.")
	case asked.DiskEncryptionKey != nil:
		return errNotServed("field diskEncryptionKey of attached disks")
	case asked.InitializeParams != nil:
		return errNotServed("field initializeParams of attached disks")
	case asked.Type != "" && asked.Type != "PERSISTENT":
		return errNotServed("disks of type " + asked.Type)
	case asked.Interface != "" && asked.Interface != scsi:
		return errNotServed("interface " + asked.Interface)
	}
	return nil
}

func (j *attachDisk) Locks() []string { return []string{j.Instance, j.Asked.Disk} }

func (j *attachDisk) Accept(s *Engine) (target, error) {
	instance, found := s.instances.get(j.Instance)
	if !found {
		return target{}, errNotFound(j.Instance)
	}
	if j.Asked.DeviceName == "" {
		j.Asked.DeviceName = freeDeviceName(s, j.Instance)
	}
	j.InstanceID, j.Asked.DiskID = instance.Id, s.disks.rows[j.Asked.Disk].Id
	return target{path: j.Instance, id: instance.Id}, checkAttachable(s, j.Asked, "")
}

// freeDeviceName is the name that Google gives a device that gets none.
func freeDeviceName(s *Engine, instance string) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("persistent-disk-%d", i)
		if _, taken := s.attachments.get(attachmentPath(instance, name)); !taken {
			return name
		}
	}
}

// checkAttachable says whether a disk can be attached, but for what an operation has
// taken itself.
func checkAttachable(s *Engine, asked attachment, operation string) error {
	instance, found := s.instances.get(asked.Instance)
	if !found {
		return errNotFound(asked.Instance)
	}
	if !slices.Contains([]string{statusInstanceRunning, statusTerminated, statusProvisioning}, instance.Status) {
		return errNotReady(asked.Instance)
	}
	disk, err := s.sameDisk(asked.Disk, asked.DiskID)
	switch {
	case err != nil:
		return err
	case disk.Status != statusReady:
		return errNotReady(asked.Disk)
	}
	if err := checkPlace(disk, instance); err != nil {
		return err
	}
	if err := checkSharing(s, disk, asked, operation); err != nil {
		return err
	}
	if other, taken := s.attachments.get(asked.path()); taken && (operation == "" || other.Taken != operation) {
		return errInvalid("resource.deviceName", asked.DeviceName, "The device name is already in use on the instance.")
	}
	return checkRoom(s, instance, asked, operation)
}

func checkRoom(s *Engine, instance compute.Instance, asked attachment, operation string) error {
	others := 0
	for _, row := range s.attachedTo(asked.Instance) {
		if operation == "" || row.Taken != operation {
			others++
		}
	}
	if limit := machineOf(instance).maxDisks; others >= limit {
		return &apiError{
			Status: http.StatusForbidden, Reason: reasonLimit,
			Message: fmt.Sprintf("Exceeded limit 'maximum_persistent_disks' on resource '%s'. Limit: %d.0", instance.Name, limit),
		}
	}
	return nil
}

func (j *attachDisk) Begin(s *Engine, operation string) error {
	if _, err := s.sameInstance(j.Instance, j.InstanceID); err != nil {
		return err
	}
	if err := checkAttachable(s, j.Asked, operation); err != nil {
		return err
	}
	if err := checkTakes(s, j.Asked); err != nil {
		return err
	}
	takeAttachment(s, j.Asked, operation)
	return nil
}

// takeAttachment keeps a disk for an operation. A crash before it is done leaves that
// known, so that no other gets the disk while the device may already be there.
func takeAttachment(s *Engine, asked attachment, operation string) {
	asked.Taken = operation
	asked.Index = freeIndex(s, asked.path(), asked.Instance)
	s.attachments.put(asked.path(), asked)
}

func freeIndex(s *Engine, path, instance string) int64 {
	used := map[int64]bool{}
	for _, row := range s.attachedTo(instance) {
		if row.path() != path {
			used[row.Index] = true
		}
	}
	for index := int64(0); ; index++ {
		if !used[index] {
			return index
		}
	}
}

func (j *attachDisk) Work(ctx context.Context, s *Engine) error {
	s.Lock()
	device, powered := s.device(j.Asked), s.isPowered(j.Instance)
	s.Unlock()
	if !powered {
		return nil
	}
	if err := s.options.Attacher.Attach(ctx, device); err != nil {
		return errors.Join(err, s.options.Attacher.Detach(ctx, device))
	}
	return nil
}

func (j *attachDisk) Finish(s *Engine) { finishAttachment(s, j.Asked.path()) }

// finishAttachment makes an attachment one that clients see.
func finishAttachment(s *Engine, path string) {
	row, _ := s.attachments.get(path)
	row.Taken = ""
	s.attachments.put(path, row)
	disk, _ := s.disks.get(row.Disk)
	disk.LastAttachTimestamp = s.timestamp()
	s.disks.put(row.Disk, disk)
}

func (j *attachDisk) Undo(s *Engine, _ string) {
	s.attachments.remove(j.Asked.path())
}
