package attach

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/volume"
)

// comparison is a View with indexes for the repeated lookups of Plan.
type comparison struct {
	View
	// isDesired are the names of desired volumes, and desiredNames those of their attachments.
	isDesired    map[corev1.UniqueVolumeName]bool
	desiredNames map[string]bool
	// attachments are the node's, by name.
	attachments map[string]*storagev1.VolumeAttachment
	// inUse and marked are the node's volumesInUse and volumesAttached.
	inUse, marked map[corev1.UniqueVolumeName]bool
}

func newComparison(view View) *comparison {
	c := &comparison{
		View:      view,
		isDesired: map[corev1.UniqueVolumeName]bool{}, desiredNames: map[string]bool{},
		attachments: map[string]*storagev1.VolumeAttachment{},
		inUse:       map[corev1.UniqueVolumeName]bool{}, marked: map[corev1.UniqueVolumeName]bool{},
	}
	for _, volume := range view.Desired {
		c.isDesired[volume.Name] = true
		c.desiredNames[volume.AttachmentName(view.Name)] = true
	}
	for _, attachment := range view.Attachments {
		c.attachments[attachment.Object.Name] = attachment.Object
	}
	if view.Node == nil {
		return c
	}
	for _, name := range view.Node.Status.VolumesInUse {
		c.inUse[name] = true
	}
	for _, attached := range view.Node.Status.VolumesAttached {
		c.marked[attached.Name] = true
	}
	return c
}

// desires reports whether pods need the volume of an attachment. The name of the attachment
// counts, too: the PersistentVolume may have been recreated.
func (c *comparison) desires(attachment Attachment) bool {
	return c.desiredNames[attachment.Object.Name] || c.isDesired[attachment.Volume.Name]
}

// hasByOtherName reports whether the node still has an in-tree disk by the name of another
// driver, which served the node before. That driver detaches it first.
func (c *comparison) hasByOtherName(desired Volume) bool {
	if desired.Driver != stowagev1alpha1.GCEDriver && desired.Driver != googleDriver {
		return false
	}
	for _, attachment := range c.Attachments {
		if isOtherNameOf(desired, attachment) {
			return true
		}
	}
	for _, name := range namesIn(c.Node) {
		if driver, handle, is := volume.ParseUniqueName(name); is && mayBeSameDisk(desired, driver, handle) {
			return true
		}
	}
	return false
}

// isOtherNameOf reports whether an attachment is, or may be, of the same in-tree disk by the
// name of the other driver that attaches such disks.
func isOtherNameOf(volume Volume, attachment Attachment) bool {
	object := attachment.Object
	if object.Spec.Attacher == volume.Driver || object.Spec.Attacher != stowagev1alpha1.GCEDriver && object.Spec.Attacher != googleDriver {
		return false
	}
	own, other := volume.Source.PersistentVolumeName, object.Spec.Source.PersistentVolumeName
	return own != nil && other != nil && *own == *other || mayBeSameDisk(volume, object.Spec.Attacher, attachment.Volume.Handle)
}

// isOff reports whether the out-of-service taint promises that the node's machine is off, and
// the node is not Ready.
func (c *comparison) isOff() bool {
	condition := ConditionOf(c.Node)
	return condition.OutOfService && !condition.Ready
}

// settling returns how long the node's volumesInUse may still be incomplete.
func (c *comparison) settling(object *storagev1.VolumeAttachment) time.Duration {
	if !object.CreationTimestamp.Before(&c.Node.CreationTimestamp) {
		return 0
	}
	return c.Node.CreationTimestamp.Add(settleTime).Sub(c.Now)
}

// volumeNamed finds the volume of a name in volumesAttached.
func (c *comparison) volumeNamed(name corev1.UniqueVolumeName) (Volume, bool) {
	if driver, handle, is := volume.ParseUniqueName(name); is {
		return Volume{Name: name, Driver: driver, Handle: handle}, true
	}
	for _, known := range c.Known {
		if known.Name == name {
			return known, true
		}
	}
	login := strings.HasPrefix(string(name), iscsiPrefix) || strings.HasPrefix(string(name), fcPrefix)
	return Volume{Name: name}, login
}
