package gcemock

import (
	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

const (
	readWrite = "READ_WRITE"
	readOnly  = "READ_ONLY"
	scsi      = "SCSI"
)

// attachment is a disk on an instance. Its path is the instance's, and the name of the
// device.
type attachment struct {
	// Instance and Disk are paths.
	Instance, Disk string
	// DiskID is the disk's own, since another may get its name.
	DiskID     uint64 `json:",string"`
	DeviceName string
	// Mode is READ_WRITE or READ_ONLY.
	Mode             string
	Boot, AutoDelete bool
	// Index is its place among the instance's disks.
	Index int64
	// Taken is the operation that attaches it and isn't done: nobody else may take the
	// disk, and clients don't see it yet.
	Taken string
}

func attachmentPath(instance, device string) string { return instance + "/devices/" + device }

func (a attachment) path() string { return attachmentPath(a.Instance, a.DeviceName) }

// usersByDisk has the instances that each disk is attached to, as clients see them.
func (s *Engine) usersByDisk() map[string][]string {
	users := map[string][]string{}
	for _, path := range s.attachments.below("projects") {
		if row := s.attachments.rows[path]; row.Taken == "" {
			users[row.Disk] = append(users[row.Disk], row.Instance)
		}
	}
	return users
}

// attachedTo has an instance's attachments, in the order in which they were made.
func (s *Engine) attachedTo(instance string) []attachment {
	var rows []attachment
	for _, path := range s.attachments.below(instance + "/devices") {
		rows = append(rows, s.attachments.rows[path])
	}
	return rows
}

// attachmentsOf has a disk's attachments, those under way as well.
func (s *Engine) attachmentsOf(disk string) []attachment {
	var rows []attachment
	for _, path := range s.attachments.below("projects") {
		if row := s.attachments.rows[path]; row.Disk == disk {
			rows = append(rows, row)
		}
	}
	return rows
}

// refuseUsers is an error while something uses a disk, or is about to.
func (s *Engine) refuseUsers(disk string) error {
	for _, row := range s.attachmentsOf(disk) {
		return errInUse(disk, row.Instance)
	}
	return nil
}

// attachedDisk is the attachment as a client sees it in its instance.
func (r *request) attachedDisk(row attachment, sizeGb int64) *compute.AttachedDisk {
	return &compute.AttachedDisk{
		Kind: "compute#attachedDisk", Type: "PERSISTENT", Interface: scsi,
		Source: r.link(row.Disk), DeviceName: row.DeviceName, Mode: row.Mode,
		Boot: row.Boot, AutoDelete: row.AutoDelete, Index: row.Index, DiskSizeGb: sizeGb,
		ForceSendFields: []string{"Boot", "AutoDelete", "Index"},
	}
}

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

// isPowered says whether an instance has devices: while it is stopped, it has none.
func (s *Engine) isPowered(instance string) bool {
	status := s.instances.rows[instance].Status
	return status == statusInstanceRunning || status == statusStaging
}
