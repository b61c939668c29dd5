package attach

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Action is what a step does.
type Action string

const (
	// Create creates a VolumeAttachment, which requests the attach of a volume.
	Create Action = "Create"
	// MarkAttached adds an attached volume to node.status.volumesAttached: then the node may use it.
	MarkAttached Action = "MarkAttached"
	// UnmarkAttached removes a volume from volumesAttached: then the node begins no new use.
	UnmarkAttached Action = "UnmarkAttached"
	// Delete deletes a VolumeAttachment, which requests the detach of its volume.
	Delete Action = "Delete"
	// Wait does nothing, for the step's Cause.
	Wait Action = "Wait"
)

// Cause is why a step waits.
type Cause string

const (
	// AttachedElsewhere means that another node has a volume that is for one node at a time.
	AttachedElsewhere Cause = "AttachedElsewhere"
	// Detaching means that the volume is still being detached from this very node, after an
	// earlier pod ended.
	Detaching Cause = "Detaching"
	// NodeOff means that the node was declared to be off: nothing starts there.
	NodeOff Cause = "NodeOff"
	// InUse means that no pod needs the volume any more, and the node still uses it.
	InUse Cause = "InUse"
	// NodeGone means that no pod needs the volume any more, and that there is no Node object
	// that could show whether it is used.
	NodeGone Cause = "NodeGone"
	// Settling means that no pod needs the volume any more, and that the node registered again
	// and may not have reported yet what it uses.
	Settling Cause = "Settling"
)

// Step is one thing to do for a node, or one to wait for.
type Step struct {
	Action Action
	Volume Volume
	// Attachment is the object that Delete deletes, or that a Wait would delete.
	Attachment *storagev1.VolumeAttachment
	// Unmarked is true if this plan removes the volume of a Delete from volumesAttached. If
	// not, the cache shows that it is not there, and a live read has to confirm that: an
	// earlier manager may have added it.
	Unmarked bool
	// OtherNodes are the nodes that an AttachedElsewhere waits for.
	OtherNodes []OtherNode
	// Cause of a Wait.
	Cause Cause
	// After is when to check again, if no event triggers it.
	After time.Duration
	// Forced means that the node may still be using the volume.
	Forced bool
}

// OtherNode is another node that has a volume, will have it, or has not released it.
type OtherNode struct {
	Node string
	// Attachment is the object by which it has the volume. Nil: only volumesAttached lists it,
	// or an attachment is about to be created.
	Attachment *storagev1.VolumeAttachment
}

// Forcible reports whether a step waits for a node to release a volume: MayForce may allow a
// detach by force.
func (s Step) Forcible() bool {
	return s.Action == Wait && (s.Cause == InUse || s.Cause == NodeGone || s.Cause == Settling)
}

// ByForce returns the steps for it by force: those of Plan if the volume were not in use.
func (s Step) ByForce(node *corev1.Node) []Step {
	var steps []Step
	marked := node != nil && IsMarkedAttached(node, s.Volume.Name)
	if marked {
		steps = append(steps, Step{Action: UnmarkAttached, Volume: s.Volume, Forced: true})
	}
	if s.Attachment != nil {
		steps = append(steps, Step{
			Action: Delete, Volume: s.Volume, Attachment: s.Attachment, Unmarked: marked, Forced: true,
		})
	}
	return steps
}

// VolumesAttached returns volumesAttached after the steps that change it, and whether that differs.
// The order stays, and so do entries that nothing here understands.
func VolumesAttached(node *corev1.Node, steps []Step) (attached []corev1.AttachedVolume, changed bool) {
	if node == nil {
		return nil, false
	}
	withdrawn := map[corev1.UniqueVolumeName]bool{}
	attached = []corev1.AttachedVolume{}
	for _, step := range steps {
		withdrawn[step.Volume.Name] = withdrawn[step.Volume.Name] || step.Action == UnmarkAttached
	}
	for _, entry := range node.Status.VolumesAttached {
		if !withdrawn[entry.Name] {
			attached = append(attached, entry)
		}
	}
	changed = len(attached) < len(node.Status.VolumesAttached)
	for _, step := range steps {
		if step.Action == MarkAttached {
			attached, changed = append(attached, corev1.AttachedVolume{Name: step.Volume.Name}), true
		}
	}
	return attached, changed
}
