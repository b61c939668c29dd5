package instances

import (
	"net/http"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// mostWriters is how many instances can have a disk that is READ_WRITE_MANY.
const mostWriters = 8

// checkSharing checks that a disk can be attached beside the attachments that it has,
// but for the one that an operation has taken itself.
func checkSharing(s *engine.Engine, disk compute.Disk, requested state.Attachment, operation string) error {
	if disk.AccessMode == state.AccessRead && requested.Mode != state.ReadOnly {
		return wire.Invalid("resource.mode", requested.Mode, "A disk with access mode READ_ONLY_MANY can only be attached as READ_ONLY.")
	}
	if disk.AccessMode == state.AccessMany && requested.Forced {
		return wire.Invalid("forceAttach", "true", "A disk with access mode READ_WRITE_MANY can't be attached by force.")
	}
	others := othersOf(s, requested.Disk, operation)
	if len(others) >= mostWriters && disk.AccessMode == state.AccessMany {
		return wire.InUse(requested.Disk, others[0].Instance)
	}
	for _, other := range others {
		isFree := requested.Forced || canShare(disk.AccessMode, requested.Mode, other.Mode)
		if other.Instance == requested.Instance || !isFree {
			return wire.InUse(requested.Disk, other.Instance)
		}
	}
	return nil
}

// othersOf are a disk's attachments but for the one that an operation has taken itself.
func othersOf(s *engine.Engine, disk, operation string) []state.Attachment {
	return slices.DeleteFunc(s.AttachmentsOf(disk), func(other state.Attachment) bool {
		return operation != "" && other.Taken == operation
	})
}

// canShare reports whether two instances can have a disk at once in these modes.
func canShare(accessMode, one, other string) bool {
	switch accessMode {
	case state.AccessMany:
		return true
	case state.AccessSingle:
		return false
	default:
		// A writer of a persistent disk is alone.
		return one == state.ReadOnly && other == state.ReadOnly
	}
}

// checkReplicaZone checks that a regional disk has a replica in an instance's zone.
func checkReplicaZone(disk compute.Disk, instance compute.Instance) error {
	if disk.Region != "" && !slices.Contains(disk.ReplicaZones, instance.Zone) {
		return wire.Invalid("resource.source", disk.SelfLink, "The disk has no replica in the zone of the instance.")
	}
	return nil
}

// checkDiskType checks that an instance supports a disk's type. Google refuses that only in
// the operation.
func checkDiskType(s *engine.Engine, requested state.Attachment) error {
	disk, instance := s.Disks.Rows[requested.Disk], s.Instances.Rows[requested.Instance]
	if !machineOf(instance).supports(wire.BaseName(disk.Type)) {
		return &wire.Error{
			Status: http.StatusBadRequest, Reason: wire.ReasonInvalid, Code: "UNSUPPORTED_OPERATION",
			Message: "[" + wire.BaseName(disk.Type) + "] features are not compatible for creating instance.",
		}
	}
	return nil
}

// machineOf is the kind of an instance's machine type. An unknown one, of an older state,
// supports all disks.
func machineOf(instance compute.Instance) machineKind {
	kind, known := machineKindOf(wire.BaseName(instance.MachineType))
	if !known {
		kind.persistent, kind.hyper, kind.maxDisks = true, true, mostDisks
	}
	return kind
}

// checkMachineType checks that a zone has a machine type.
func checkMachineType(path, zone string) error {
	if _, known := machineKindOf(wire.BaseName(path)); !known || !strings.HasPrefix(path, zone+"/machineTypes/") {
		return wire.Invalid("resource.machineType", path, "The referenced machineType resource cannot be found.")
	}
	return nil
}
