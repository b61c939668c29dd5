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
	// isWanted are the names of wanted volumes, and wantedNames those of their attachments.
	isWanted    map[corev1.UniqueVolumeName]bool
	wantedNames map[string]bool
	// attachments are the node's, by name.
	attachments map[string]*storagev1.VolumeAttachment
	// used and reported are the node's volumesInUse and volumesAttached.
	used, reported map[corev1.UniqueVolumeName]bool
}

func newComparison(view View) *comparison {
	c := &comparison{
		View:     view,
		isWanted: map[corev1.UniqueVolumeName]bool{}, wantedNames: map[string]bool{},
		attachments: map[string]*storagev1.VolumeAttachment{},
		used:        map[corev1.UniqueVolumeName]bool{}, reported: map[corev1.UniqueVolumeName]bool{},
	}
	for _, volume := range view.Wanted {
		c.isWanted[volume.Name] = true
		c.wantedNames[volume.AttachmentName(view.Name)] = true
	}
	for _, attachment := range view.Attachments {
		c.attachments[attachment.Object.Name] = attachment.Object
	}
	if view.Node == nil {
		return c
	}
	for _, name := range view.Node.Status.VolumesInUse {
		c.used[name] = true
	}
	for _, attached := range view.Node.Status.VolumesAttached {
		c.reported[attached.Name] = true
	}
	return c
}

// wants reports whether pods want the volume of an attachment. The name of the attachment
// counts, too: the PersistentVolume may have been recreated.
func (c *comparison) wants(attachment Attachment) bool {
	return c.wantedNames[attachment.Object.Name] || c.isWanted[attachment.Volume.Name]
}

// hasByOtherName reports whether the node still has an existing disk by the name of another
// driver, which served the node before. That driver detaches it first.
func (c *comparison) hasByOtherName(wanted Volume) bool {
	if wanted.Driver != stowagev1alpha1.GCEDriver && wanted.Driver != googleDriver {
		return false
	}
	for _, attachment := range c.Attachments {
		if isOtherNameOf(wanted, attachment) {
			return true
		}
	}
	for _, name := range namesIn(c.Node) {
		if driver, handle, is := volume.ParseUniqueName(name); is && mayBeSameDisk(wanted, driver, handle) {
			return true
		}
	}
	return false
}

// isOtherNameOf reports whether an attachment is, or may be, of the same existing disk by the
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
	return c.Node.CreationTimestamp.Add(settles).Sub(c.Now)
}

// understand finds the volume of a name in volumesAttached.
func (c *comparison) understand(name corev1.UniqueVolumeName) (Volume, bool) {
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
