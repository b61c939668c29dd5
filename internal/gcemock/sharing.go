package gcemock

import (
	"net/http"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
)

// mostWriters is how many instances can have a disk that is READ_WRITE_MANY.
const mostWriters = 8

// checkSharing checks that a disk can be attached beside the attachments that it has,
// but for the one that an operation has taken itself.
func checkSharing(s *Engine, disk compute.Disk, asked attachment, operation string) error {
	if disk.AccessMode == accessRead && asked.Mode != readOnly {
		return errInvalid("resource.mode", asked.Mode, "A disk with access mode READ_ONLY_MANY can only be attached as READ_ONLY.")
	}
	others := slices.DeleteFunc(s.attachmentsOf(asked.Disk), func(other attachment) bool {
		return operation != "" && other.Taken == operation
	})
	if len(others) >= mostWriters && disk.AccessMode == accessMany {
		return errInUse(asked.Disk, others[0].Instance)
	}
	for _, other := range others {
		if other.Instance == asked.Instance || !canShare(disk.AccessMode, asked.Mode, other.Mode) {
			return errInUse(asked.Disk, other.Instance)
		}
	}
	return nil
}

// canShare reports whether two instances can have a disk at once in these modes.
func canShare(accessMode, one, other string) bool {
	switch accessMode {
	case accessMany:
		return true
	case accessSingle:
		return false
	default:
		// A writer of a persistent disk is alone.
		return one == readOnly && other == readOnly
	}
}

// checkPlace checks that a regional disk has a replica in an instance's zone.
func checkPlace(disk compute.Disk, instance compute.Instance) error {
	if disk.Region != "" && !slices.Contains(disk.ReplicaZones, instance.Zone) {
		return errInvalid("resource.source", disk.SelfLink, "The disk has no replica in the zone of the instance.")
	}
	return nil
}

// checkTakes checks that an instance takes disks of a disk's type. Google says so only
// in the operation.
func checkTakes(s *Engine, asked attachment) error {
	disk, instance := s.disks.rows[asked.Disk], s.instances.rows[asked.Instance]
	if !machineOf(instance).takes(baseName(disk.Type)) {
		return &apiError{
			Status: http.StatusBadRequest, Reason: reasonInvalid, Code: "UNSUPPORTED_OPERATION",
			Message: "[" + baseName(disk.Type) + "] features are not compatible for creating instance.",
		}
	}
	return nil
}

// machineOf is what there is to know of an instance's machine type. One that no catalog
// has, of an older state, takes all disks.
func machineOf(instance compute.Instance) machineKind {
	kind, known := machineKindOf(baseName(instance.MachineType))
	if !known {
		kind.persistent, kind.hyper, kind.maxDisks = true, true, mostDisks
	}
	return kind
}

// checkMachineType checks that a zone has a machine type.
func checkMachineType(path, zone string) error {
	if _, known := machineKindOf(baseName(path)); !known || !strings.HasPrefix(path, zone+"/machineTypes/") {
		return errInvalid("resource.machineType", path, "The referenced machineType resource cannot be found.")
	}
	return nil
}
