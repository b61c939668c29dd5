package backend

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Attacher is a backend with volumes that are devices, which a node has only while they are attached
// to it.
type Attacher interface {
	// Attach makes the volume with the request's id be attached to the request's node, and returns
	// what the node needs to find the device. See DeviceMetadata and SerialMetadata. It attaches no
	// volume with an owner record that doesn't fit the id. It can be repeated, also after a crash.
	//
	// A disk's path as id, such as projects/demo/zones/europe-west3-a/disks/data, names a disk that
	// Stowage didn't make (volume.IsDiskPath). To a backend of kind csi it is an id as any other.
	// Another one that isn't for such disks answers Invalid; one that is refuses the disks of volumes with Conflict. Only the methods of Attacher accept
	// such an id: these disks are never made, grown, listed or removed. Attachments of other
	// programs are left alone.
	//
	// An error of kind
	//   InProgress   says that work goes on and that the call is to be repeated;
	//   Conflict     says that the volume isn't this backend's, or is attached
	//                elsewhere, or in another way, so that both can't be;
	//   NotFound     says that there is no such volume;
	//   WrongNode    says that the node can't have it: it has no instance, or one
	//                that the volume can't be attached to;
	//   Exhausted    says that the node has no room for another device now;
	//   NotReady     says that something isn't ready for it, and that a repeat soon
	//                should help;
	//   Invalid      says that no repeat helps until something is changed;
	//   Unavailable  says that the storage didn't take the call.
	// After an error of no kind, or of kind InProgress, the volume may be attached or
	// come to be.
	Attach(ctx context.Context, request AttachRequest) (Attachment, error)

	// Detach makes the volume with this id not be attached to a node. A volume that isn't attached
	// or doesn't exist, and a node without an instance, are no error. Detach doesn't check whether
	// the node still uses the device: the caller does before. InProgress says that work goes on, and
	// that the call is to be repeated until it returns nil; other kinds are as for Attach. Disks that
	// Stowage didn't make are detached also where Attach isn't allowed any more.
	Detach(ctx context.Context, id string, node NodeIdentity) error

	// IsAttached reports whether the volume with this id is attached to a node's machine, from which
	// Detach would detach it. It changes nothing. False is certain: the volume isn't attached, and no
	// attach to that machine is in progress. If the machine is unknown, it is true while the volume
	// is attached to any machine that the node may be. InProgress says that an attach or a detach
	// goes on there; other kinds are as for Detach, and say nothing about the volume.
	IsAttached(ctx context.Context, id string, node NodeIdentity) (bool, error)
}

// AttachmentLister is an Attacher that can list the attachments of all its volumes at once, also
// those that other programs made.
type AttachmentLister interface {
	// Attachments returns one element for each volume with an owner record of this cluster and this
	// backend, and each node that it is attached to.
	Attachments(ctx context.Context) ([]Attached, error)
}

// PublicationLister is an Attacher that can list at once which nodes have which volumes, by the ids
// that a CSI driver gave the nodes. The list has volumes and nodes of other clusters, too, so the
// caller names the volumes (csi).
type PublicationLister interface {
	// Publications returns the ids of the nodes that have each of these volumes. A volume that the
	// storage doesn't list is absent, and nothing is known of it. Nil without an error says that the
	// storage lists no nodes at all. A list may be late: the caller compares two.
	Publications(ctx context.Context, of map[string]bool) (nodes map[string][]string, err error)
}

// NodeObserver is a backend that knows more about a node than its Node object says.
type NodeObserver interface {
	// ObserveNode returns the state of a node's machine. An error says nothing about the machine.
	ObserveNode(ctx context.Context, node NodeIdentity) (Machine, error)
}

// NodeIdentity is how a backend finds a node's machine.
type NodeIdentity struct {
	// Name of the Node object, which may be gone.
	Name string
	// ProviderID of the node, as its Node object had it. Empty if it is unknown: then the backend
	// finds the machine by name.
	ProviderID string
	// DriverID is the id that the node's CSI driver gave the node, as its CSINode or an earlier
	// attachment had it. Only a backend of kind csi needs it.
	DriverID string
}

// AttachRequest asks for one volume on one node.
type AttachRequest struct {
	// ID of the volume in the backend.
	ID string
	// Volume is the PersistentVolume: its attributes, modes and Secrets go to a CSI driver. Nil for
	// a volume without one.
	Volume *corev1.PersistentVolume
	// Node that it is to be attached to.
	Node NodeIdentity
	// ReadOnly is true where the node must not be able to write. Several nodes can have a volume at
	// once if it is read-only on all of them.
	ReadOnly bool
}

// Attachment is the outcome of Attach: what the node needs to find the device. It goes into the
// VolumeAttachment's status.attachmentMetadata.
type Attachment struct {
	Metadata map[string]string
}

// Keys of an Attachment's metadata.
const (
	// DeviceMetadata is the name that the device has on the node. A GCE disk is found
	// as /dev/disk/by-id/google-<name>.
	DeviceMetadata = "device"
	// SerialMetadata is the serial that the device must have: another disk may have the name now.
	SerialMetadata = "serial"
	// InstanceMetadata is the provider's id of the machine, as in a node's
	// spec.providerID, for when the Node object is gone.
	InstanceMetadata = "instance"
)

// Attached is a volume that is attached to a node.
type Attached struct {
	// ID of the volume.
	ID string
	// ProviderID of the node that it is attached to. DriverID in its place is the id that the
	// node's CSI driver gave it, of a backend of kind csi.
	ProviderID, DriverID string
	// ReadOnly is true where that node can't write it.
	ReadOnly bool
}

// Machine is the state of a node's machine.
type Machine string

const (
	// MachineUnknown is an unknown state.
	MachineUnknown Machine = ""
	// MachineRuns is a machine that runs, starts, or stops: it may still write.
	MachineRuns Machine = "Runs"
	// MachineStopped is a machine that doesn't run, and writes nothing.
	MachineStopped Machine = "Stopped"
	// MachineGone is a machine that doesn't exist, and won't again: it writes nothing.
	MachineGone Machine = "Gone"
)
