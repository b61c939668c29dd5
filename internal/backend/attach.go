package backend

import "context"

// Attacher is a backend whose volumes are devices, which a node has only while they
// are attached to it.
type Attacher interface {
	// Attach sees to it that the volume with the request's id is attached to the
	// request's node, and tells what the node needs to find the device: see
	// DeviceMetadata and SerialMetadata. It attaches nothing whose owner's record
	// doesn't fit the id. It can be repeated, also after a crash.
	//
	// An id that is a disk's path, such as projects/demo/zones/europe-west3-a/disks/data, is
	// of a disk that Stowage didn't make (volume.IsDiskPath). A backend that isn't for such
	// disks answers Invalid, and one that is refuses the disks of volumes with Conflict.
	// Nothing but the methods of Attacher accepts such an id: these disks are never made,
	// grown, listed or removed. What another program attached is left alone.
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

	// Detach sees to it that the volume with this id isn't attached to a node. One
	// that isn't, or that doesn't exist, and a node that has no instance, are no
	// error. Whether the node still uses the device is not asked: whoever calls has
	// made sure. InProgress says that work goes on, and that the call is to be
	// repeated until it returns nil; other kinds are as for Attach. Disks that Stowage
	// didn't make are detached also where Attach isn't allowed any more.
	Detach(ctx context.Context, id string, node NodeIdentity) error

	// IsAttached reports whether the volume with this id is attached to a node's machine,
	// where Detach would take it away. It changes nothing. False says for certain that it
	// isn't, and that no attach to that machine is under way. Where nobody knows the
	// machine, it is true while the volume is attached to any that might be it.
	// InProgress says that an attach or a detach goes on there; other kinds are as for
	// Detach, and say nothing of the volume.
	IsAttached(ctx context.Context, id string, node NodeIdentity) (bool, error)
}

// AttachmentLister is an Attacher that can tell, for all of its volumes at once, where
// they are attached, whoever did it.
type AttachmentLister interface {
	// Attachments returns one element for each volume that bears the mark of this
	// cluster and this backend and each node that it is attached to.
	Attachments(ctx context.Context) ([]Attached, error)
}

// NodeObserver is a backend that knows more of a node than its Node object tells.
type NodeObserver interface {
	// ObserveNode tells what became of the machine that a node is. An error says
	// nothing of the machine.
	ObserveNode(ctx context.Context, node NodeIdentity) (Machine, error)
}

// NodeIdentity is how a backend finds the machine that a node is.
type NodeIdentity struct {
	// Name of the Node object, which may be gone.
	Name string
	// ProviderID of the node, as its Node object had it. Empty where it isn't known
	// any more: then the machine is looked for by name.
	ProviderID string
}

// AttachRequest asks for one volume on one node.
type AttachRequest struct {
	// ID of the volume in the backend.
	ID string
	// Node that it is to be attached to.
	Node NodeIdentity
	// ReadOnly is true where the node must not be able to write. Several nodes can
	// have a volume at once that all of them have so.
	ReadOnly bool
}

// Attachment is what Attach did: what the node needs to find the device. It goes into
// the VolumeAttachment's status.attachmentMetadata.
type Attachment struct {
	Metadata map[string]string
}

// Keys of an Attachment's metadata.
const (
	// DeviceMetadata is the name that the device has on the node. A GCE disk is found
	// as /dev/disk/by-id/google-<name>.
	DeviceMetadata = "device"
	// SerialMetadata is the serial that the device must have: a name alone may be
	// another disk's by now.
	SerialMetadata = "serial"
	// InstanceMetadata is the provider's id of the machine, as in a node's
	// spec.providerID, for when the Node object is gone.
	InstanceMetadata = "instance"
)

// Attached is a volume that is attached to a node.
type Attached struct {
	// ID of the volume.
	ID string
	// ProviderID of the node that it is attached to.
	ProviderID string
	// ReadOnly is true where that node can't write it.
	ReadOnly bool
}

// Machine is what became of the machine that a node is.
type Machine string

const (
	// MachineUnknown says that nobody knows.
	MachineUnknown Machine = ""
	// MachineRuns says that it runs, starts, or stops: it may still write.
	MachineRuns Machine = "Runs"
	// MachineStopped says that it doesn't run, and writes nothing.
	MachineStopped Machine = "Stopped"
	// MachineGone says that there is none, and won't be: writes nothing.
	MachineGone Machine = "Gone"
)
