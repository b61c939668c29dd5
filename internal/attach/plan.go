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
	// Wanted are the volumes that its pods want, each once.
	Wanted []Volume
	// Attachments are all of the node's.
	Attachments []Attachment
	// Known are the volumes of names in volumesAttached without a driver and handle.
	Known []Volume
	// Holders are other nodes that have volumes which pods want here, and which one node at a
	// time can have.
	Holders map[corev1.UniqueVolumeName][]Holder
	// Now is the time of the pass.
	Now time.Time
}

// Plan compares what the pods of a node want with what the node has, and returns the steps for
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

// approach returns the next step for a wanted volume.
func (c *comparison) approach(volume Volume) []Step {
	own := c.attachments[volume.AttachmentName(c.Name)]
	switch {
	case c.Node == nil:
		// There is no node to use it, and no status to write.
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

// await waits for a volume to be attached. Two managers that both believed to be the leader
// may have created attachments on two nodes. The younger attachment gives way, because foreign
// drivers do not check which came first.
func (c *comparison) await(volume Volume, own *storagev1.VolumeAttachment) []Step {
	for _, holder := range c.Holders[volume.Name] {
		if holder.Attachment != nil && Older(holder.Attachment, own) < 0 {
			return c.remove(volume, own)
		}
	}
	return c.withdraw(volume)
}

// leave returns the next step for an attachment of a volume that no pod wants.
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

// forget removes entries of volumesAttached that no pod wants and that have no attachment. An
// entry that is not understood stays.
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

// withdraw removes a volume from volumesAttached, unless the node uses it.
func (c *comparison) withdraw(volume Volume) []Step {
	if !c.reported[volume.Name] || c.used[volume.Name] {
		return nil
	}
	return []Step{{Action: Withdraw, Volume: volume}}
}

// remove removes a volume from volumesAttached and deletes its attachment, unless the node
// uses it.
func (c *comparison) remove(volume Volume, object *storagev1.VolumeAttachment) []Step {
	if c.used[volume.Name] {
		return nil
	}
	return append(c.withdraw(volume), Step{
		Action: Delete, Volume: volume, Attachment: object, Withdrawn: c.reported[volume.Name],
	})
}
