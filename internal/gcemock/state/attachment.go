package state

import (
	"slices"

	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// Modes of attachments, and their only interface.
const (
	ReadWrite = "READ_WRITE"
	ReadOnly  = "READ_ONLY"
	SCSI      = "SCSI"
)

// Access modes of hyperdisks. Persistent disks have none: the mode of each attachment
// decides which instances share them.
const (
	AccessSingle = "READ_WRITE_SINGLE"
	AccessMany   = "READ_WRITE_MANY"
	AccessRead   = "READ_ONLY_MANY"
)

// Attachment is a disk on an instance. Its path is the instance's, and the name of the
// device.
type Attachment struct {
	// Instance and Disk are paths.
	Instance, Disk string
	// DiskID is the disk's own, since another may get its name.
	DiskID     uint64 `json:",string"`
	DeviceName string
	// Mode is READ_WRITE or READ_ONLY.
	Mode             string
	Boot, AutoDelete bool
	// Forced attachments under way take the disk from the instances that have it.
	Forced bool `json:",omitempty"`
	// From are the paths of the attachments that such a one takes the disk from, once it is reserved.
	From []string `json:",omitempty"`
	// Index is its place among the instance's disks.
	Index int64
	// Taken is the operation that attaches it and isn't done: the disk is reserved for it,
	// and clients don't see the attachment yet.
	Taken string
}

// AttachmentPath is the path of the attachment with this device name.
func AttachmentPath(instance, device string) string { return instance + "/devices/" + device }

// Path is the path of the row.
func (a Attachment) Path() string { return AttachmentPath(a.Instance, a.DeviceName) }

// UsersByDisk has the instances that each disk is attached to, as clients see them.
func (s *Store) UsersByDisk() map[string][]string {
	users := map[string][]string{}
	for _, path := range s.Attachments.Below("projects") {
		if row := s.Attachments.Rows[path]; row.Taken == "" {
			users[row.Disk] = append(users[row.Disk], row.Instance)
		}
	}
	return users
}

// AttachedTo has an instance's attachments, in the order in which they were made.
func (s *Store) AttachedTo(instance string) []Attachment {
	var rows []Attachment
	for _, path := range s.Attachments.Below(instance + "/devices") {
		rows = append(rows, s.Attachments.Rows[path])
	}
	return rows
}

// AttachmentsOf has a disk's attachments, those under way as well.
func (s *Store) AttachmentsOf(disk string) []Attachment {
	var rows []Attachment
	for _, path := range s.Attachments.Below("projects") {
		if row := s.Attachments.Rows[path]; row.Disk == disk {
			rows = append(rows, row)
		}
	}
	return rows
}

// IsBeingTaken reports whether a forced attachment under way takes the disk from this one. Its device
// may be gone, and must not come back beside the new one.
func (s *Store) IsBeingTaken(row Attachment) bool {
	for _, other := range s.Attachments.Rows {
		if other.Disk == row.Disk && slices.Contains(other.From, row.Path()) {
			return true
		}
	}
	return false
}

// RefuseUsers is an error while something uses a disk, or is about to.
func (s *Store) RefuseUsers(disk string) error {
	for _, row := range s.AttachmentsOf(disk) {
		return wire.InUse(disk, row.Instance)
	}
	return nil
}

// IsPowered reports whether an instance has devices: while it is stopped, it has none.
func (s *Store) IsPowered(instance string) bool {
	status := s.Instances.Rows[instance].Status
	return status == StatusInstanceRunning || status == StatusStaging
}
