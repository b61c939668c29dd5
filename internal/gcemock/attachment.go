package gcemock

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
func (s *store) usersByDisk() map[string][]string {
	users := map[string][]string{}
	for _, path := range s.attachments.below("projects") {
		if row := s.attachments.rows[path]; row.Taken == "" {
			users[row.Disk] = append(users[row.Disk], row.Instance)
		}
	}
	return users
}

// attachedTo has an instance's attachments, in the order in which they were made.
func (s *store) attachedTo(instance string) []attachment {
	var rows []attachment
	for _, path := range s.attachments.below(instance + "/devices") {
		rows = append(rows, s.attachments.rows[path])
	}
	return rows
}

// attachmentsOf has a disk's attachments, those under way as well.
func (s *store) attachmentsOf(disk string) []attachment {
	var rows []attachment
	for _, path := range s.attachments.below("projects") {
		if row := s.attachments.rows[path]; row.Disk == disk {
			rows = append(rows, row)
		}
	}
	return rows
}

// refuseUsers is an error while something uses a disk, or is about to.
func (s *store) refuseUsers(disk string) error {
	for _, row := range s.attachmentsOf(disk) {
		return errInUse(disk, row.Instance)
	}
	return nil
}

// isPowered says whether an instance has devices: while it is stopped, it has none.
func (s *store) isPowered(instance string) bool {
	status := s.instances.rows[instance].Status
	return status == statusInstanceRunning || status == statusStaging
}
