package attach

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// View is what is known of one node.
type View struct {
	Name string
	// Node is nil if there is no such object.
	Node *corev1.Node
	// Desired are the volumes that its pods need, each once.
	Desired []Volume
	// Attachments are all of the node's.
	Attachments []Attachment
	// Known are the volumes of names in volumesAttached without a driver and handle.
	Known []Volume
	// OtherNodes are the other nodes that have volumes which pods need here, and which one node at a
	// time can have.
	OtherNodes map[corev1.UniqueVolumeName][]OtherNode
	// Now is the time of the pass.
	Now time.Time
}

// Plan compares what the pods of a node need with what the node has, and returns the steps for
// the difference. None of them is by force.
//
// A volume leaves a node in two steps, always in this order. First it is removed from
// volumesAttached while it is not in volumesInUse. Then its attachment is deleted. The order
// holds however often the steps are interrupted.
func Plan(view View) []Step {
	if view.Node != nil && !IsManaged(view.Node) {
		return nil
	}
	node := newComparison(view)
	var steps []Step
	for _, volume := range view.Desired {
		steps = append(steps, node.attachDesired(volume)...)
	}
	for _, attachment := range view.Attachments {
		if !attachment.Foreign && !node.desires(attachment) {
			steps = append(steps, node.detachUndesired(attachment)...)
		}
	}
	return append(steps, node.unmarkUndesired()...)
}

// attachDesired returns the next step for a desired volume.
func (c *comparison) attachDesired(volume Volume) []Step {
	own := c.attachments[volume.AttachmentName(c.Name)]
	switch {
	case c.Node == nil:
		// There is no node to use it, and no status to write.
		return nil
	case !volume.NeedsAttachment() && c.marked[volume.Name]:
		return nil
	case own == nil && c.isOff():
		return []Step{{Action: Wait, Volume: volume, Cause: NodeOff}}
	case own == nil && c.hasByOtherName(volume):
		return []Step{{Action: Wait, Volume: volume, Cause: Detaching}}
	case own == nil && len(c.OtherNodes[volume.Name]) > 0:
		return []Step{{Action: Wait, Volume: volume, Cause: AttachedElsewhere, OtherNodes: c.OtherNodes[volume.Name]}}
	case !volume.NeedsAttachment():
		return []Step{{Action: MarkAttached, Volume: volume}}
	case own == nil:
		return []Step{{Action: Create, Volume: volume}}
	case !own.DeletionTimestamp.IsZero():
		return append(c.unmark(volume), Step{Action: Wait, Volume: volume, Cause: Detaching})
	case !own.Status.Attached:
		return c.awaitAttach(volume, own)
	case !c.marked[volume.Name]:
		return []Step{{Action: MarkAttached, Volume: volume, Attachment: own}}
	default:
		return nil
	}
}

// awaitAttach waits for a volume to be attached. Two managers that both believed to be the leader
// may have created attachments on two nodes. The younger attachment gives way, because foreign
// drivers do not check which came first.
func (c *comparison) awaitAttach(volume Volume, own *storagev1.VolumeAttachment) []Step {
	for _, other := range c.OtherNodes[volume.Name] {
		if other.Attachment != nil && Older(other.Attachment, own) < 0 {
			return c.detach(volume, own)
		}
	}
	return c.unmark(volume)
}

// detachUndesired returns the next step for an attachment of a volume that no pod needs.
func (c *comparison) detachUndesired(attachment Attachment) []Step {
	volume, object := attachment.Volume, attachment.Object
	deleted := !object.DeletionTimestamp.IsZero()
	switch {
	case deleted && c.Node == nil:
		return nil
	case deleted:
		return c.unmark(volume)
	case c.Node == nil:
		return []Step{{Action: Wait, Volume: volume, Attachment: object, Cause: NodeGone}}
	case c.inUse[volume.Name]:
		return []Step{{Action: Wait, Volume: volume, Attachment: object, Cause: InUse}}
	case c.settling(object) > 0:
		return []Step{{Action: Wait, Volume: volume, Attachment: object, Cause: Settling, After: c.settling(object)}}
	default:
		return c.detach(volume, object)
	}
}

// unmarkUndesired removes entries of volumesAttached that no pod needs and that have no attachment. An
// entry that is not understood stays.
func (c *comparison) unmarkUndesired() []Step {
	if c.Node == nil {
		return nil
	}
	var steps []Step
	for _, attached := range c.Node.Status.VolumesAttached {
		volume, understood := c.volumeNamed(attached.Name)
		switch {
		case !understood || c.isDesired[volume.Name]:
		case volume.NeedsAttachment() && c.attachments[volume.AttachmentName(c.Name)] != nil:
		case c.inUse[volume.Name]:
			steps = append(steps, Step{Action: Wait, Volume: volume, Cause: InUse})
		default:
			steps = append(steps, Step{Action: UnmarkAttached, Volume: volume})
		}
	}
	return steps
}

// unmark removes a volume from volumesAttached, unless the node uses it.
func (c *comparison) unmark(volume Volume) []Step {
	if !c.marked[volume.Name] || c.inUse[volume.Name] {
		return nil
	}
	return []Step{{Action: UnmarkAttached, Volume: volume}}
}

// detach removes a volume from volumesAttached and deletes its attachment, unless the node
// uses it.
func (c *comparison) detach(volume Volume, object *storagev1.VolumeAttachment) []Step {
	if c.inUse[volume.Name] {
		return nil
	}
	return append(c.unmark(volume), Step{
		Action: Delete, Volume: volume, Attachment: object, Unmarked: c.marked[volume.Name],
	})
}
