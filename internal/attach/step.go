package attach

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Action is what a step does.
type Action string

const (
	// Create makes the VolumeAttachment that asks for a volume to be attached.
	Create Action = "Create"
	// Report puts an attached volume into node.status.volumesAttached, whereupon the
	// node may use it.
	Report Action = "Report"
	// Withdraw takes a volume out of there, whereupon the node begins no new use.
	Withdraw Action = "Withdraw"
	// Delete deletes a VolumeAttachment, which asks for its volume to be detached.
	Delete Action = "Delete"
	// Wait does nothing, for the step's Cause.
	Wait Action = "Wait"
)

// Cause is why a step waits.
type Cause string

const (
	// Elsewhere says that another node has a volume that is for one node at a time.
	Elsewhere Cause = "Elsewhere"
	// Leaving says that the volume is still being detached from this very node, which
	// an earlier pod made it leave.
	Leaving Cause = "Leaving"
	// NodeOff says that the node was declared to be off: nothing starts there.
	NodeOff Cause = "NodeOff"
	// InUse says that no pod needs the volume any more, and the node still uses it.
	InUse Cause = "InUse"
	// NodeGone says that no pod needs the volume any more, and that there is no Node
	// object that could tell whether it is used.
	NodeGone Cause = "NodeGone"
	// Settling says that no pod needs the volume any more, and that the node has
	// registered anew and may not have told yet what it uses.
	Settling Cause = "Settling"
)

// Step is one thing to do for a node, or one to wait for.
type Step struct {
	Action Action
	Volume Volume
	// Attachment is what Delete deletes, or would if it hadn't to wait.
	Attachment *storagev1.VolumeAttachment
	// Withdrawn says that this plan withdraws what Delete deletes. Where it doesn't,
	// the volume isn't in volumesAttached as far as is known, and the API server has to
	// say so, too: an earlier manager may have put it there.
	Withdrawn bool
	// Holders are the nodes that it waits for, where it is Elsewhere.
	Holders []Holder
	// Cause of a Wait.
	Cause Cause
	// After is when to look again, where nothing else tells.
	After time.Duration
	// Forced says that the node may still be using the volume.
	Forced bool
}

// Holder is another node that has a volume, will have it, or isn't done with it.
type Holder struct {
	Node string
	// Attachment is by what it has it. Nil: the node was told of it all the same, or
	// is about to get one.
	Attachment *storagev1.VolumeAttachment
}

// Forcible tells of a wait that it is for a node to let go of a volume, which can be
// taken from it by force where MayForce allows it.
func (s Step) Forcible() bool {
	return s.Action == Wait && (s.Cause == InUse || s.Cause == NodeGone || s.Cause == Settling)
}

// ByForce is what to do for it by force: what Plan would, were the volume not in use.
func (s Step) ByForce(node *corev1.Node) []Step {
	var steps []Step
	reported := node != nil && Told(node, s.Volume.Name)
	if reported {
		steps = append(steps, Step{Action: Withdraw, Volume: s.Volume, Forced: true})
	}
	if s.Attachment != nil {
		steps = append(steps, Step{
			Action: Delete, Volume: s.Volume, Attachment: s.Attachment, Withdrawn: reported, Forced: true,
		})
	}
	return steps
}
