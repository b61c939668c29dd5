package attach

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// View is what is known of one node.
type View struct {
	Name string
	// Node is nil where there is no such object.
	Node *corev1.Node
	// Wanted are the volumes that its pods want, each once.
	Wanted []Volume
	// Attachments are all of the node's.
	Attachments []Attachment
	// Known are volumes whose names in volumesAttached tell nobody what they are.
	Known []Volume
	// Holders are other nodes that have volumes which are wanted here and are for one
	// node at a time.
	Holders map[corev1.UniqueVolumeName][]Holder
	// Now is the time.
	Now time.Time
}

// Plan compares what the pods of a node want with what the node has, and says what to
// do about the difference. Nothing in it is done by force.
//
// A volume leaves a node in two steps, in this order, however often they are
// interrupted: it is withdrawn from volumesAttached while it isn't in volumesInUse,
// and then its attachment is deleted.
func Plan(view View) []Step {
	if view.Node != nil && !IsManaged(view.Node) {
		return nil
	}
	node := newComparison(view)
	var steps []Step
	for _, volume := range view.Wanted {
		steps = append(steps, node.approach(volume)...)
	}
	for _, attachment := range view.Attachments {
		if !attachment.Foreign && !node.wants(attachment) {
			steps = append(steps, node.leave(attachment)...)
		}
	}
	return append(steps, node.forget()...)
}

// approach brings a wanted volume further.
func (c *comparison) approach(volume Volume) []Step {
	own := c.attachments[volume.AttachmentName(c.Name)]
	switch {
	case c.Node == nil:
		// Nobody is there to use it, or to be told.
		return nil
	case !volume.NeedsAttachment() && c.reported[volume.Name]:
		return nil
	case own == nil && c.isOff():
		return []Step{{Action: Wait, Volume: volume, Cause: NodeOff}}
	case own == nil && c.hasByOtherName(volume):
		return []Step{{Action: Wait, Volume: volume, Cause: Leaving}}
	case own == nil && len(c.Holders[volume.Name]) > 0:
		return []Step{{Action: Wait, Volume: volume, Cause: Elsewhere, Holders: c.Holders[volume.Name]}}
	case !volume.NeedsAttachment():
		return []Step{{Action: Report, Volume: volume}}
	case own == nil:
		return []Step{{Action: Create, Volume: volume}}
	case !own.DeletionTimestamp.IsZero():
		return append(c.withdraw(volume), Step{Action: Wait, Volume: volume, Cause: Leaving})
	case !own.Status.Attached:
		return c.await(volume, own)
	case !c.reported[volume.Name]:
		return []Step{{Action: Report, Volume: volume, Attachment: own}}
	default:
		return nil
	}
}

// await waits for a volume to be attached. Two managers that both took themselves for
// the leader may have asked for it on two nodes: whose attachment is younger gives way,
// because the drivers of others don't look who came first.
func (c *comparison) await(volume Volume, own *storagev1.VolumeAttachment) []Step {
	for _, holder := range c.Holders[volume.Name] {
		if holder.Attachment != nil && Older(holder.Attachment, own) < 0 {
			return c.remove(volume, own)
		}
	}
	return c.withdraw(volume)
}

// leave brings the attachment of a volume that no pod wants to its end.
func (c *comparison) leave(attachment Attachment) []Step {
	volume, object := attachment.Volume, attachment.Object
	leaves := !object.DeletionTimestamp.IsZero()
	switch {
	case leaves && c.Node == nil:
		return nil
	case leaves:
		return c.withdraw(volume)
	case c.Node == nil:
		return []Step{{Action: Wait, Volume: volume, Attachment: object, Cause: NodeGone}}
	case c.used[volume.Name]:
		return []Step{{Action: Wait, Volume: volume, Attachment: object, Cause: InUse}}
	case c.settling(object) > 0:
		return []Step{{Action: Wait, Volume: volume, Attachment: object, Cause: Settling, After: c.settling(object)}}
	default:
		return c.remove(volume, object)
	}
}

// forget withdraws what the node was told of, and what neither a pod wants nor an
// attachment stands for. What isn't understood stays.
func (c *comparison) forget() []Step {
	if c.Node == nil {
		return nil
	}
	var steps []Step
	for _, attached := range c.Node.Status.VolumesAttached {
		volume, understood := c.understand(attached.Name)
		switch {
		case !understood || c.isWanted[volume.Name]:
		case volume.NeedsAttachment() && c.attachments[volume.AttachmentName(c.Name)] != nil:
		case c.used[volume.Name]:
			steps = append(steps, Step{Action: Wait, Volume: volume, Cause: InUse})
		default:
			steps = append(steps, Step{Action: Withdraw, Volume: volume})
		}
	}
	return steps
}

// withdraw takes a volume from what the node was told, unless the node uses it.
func (c *comparison) withdraw(volume Volume) []Step {
	if !c.reported[volume.Name] || c.used[volume.Name] {
		return nil
	}
	return []Step{{Action: Withdraw, Volume: volume}}
}

// remove withdraws a volume and deletes its attachment, unless the node uses it.
func (c *comparison) remove(volume Volume, object *storagev1.VolumeAttachment) []Step {
	if c.used[volume.Name] {
		return nil
	}
	return append(c.withdraw(volume), Step{
		Action: Delete, Volume: volume, Attachment: object, Withdrawn: c.reported[volume.Name],
	})
}
