package attach

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/volume"
)

// comparison is a View with what Plan asks it again and again.
type comparison struct {
	View
	// isWanted are the names of wanted volumes, and wantedNames those of their
	// attachments.
	isWanted    map[corev1.UniqueVolumeName]bool
	wantedNames map[string]bool
	// attachments are the node's, by name.
	attachments map[string]*storagev1.VolumeAttachment
	// used and reported are what the node uses, and what it was told of.
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

// wants tells whether pods want what an attachment is of. Its name tells, too: the
// volume object may be one that was made anew.
func (c *comparison) wants(attachment Attachment) bool {
	return c.wantedNames[attachment.Object.Name] || c.isWanted[attachment.Volume.Name]
}

// hasByOtherName tells of an existing disk that the node has it by the name of another
// driver still, which served the node before: that one takes it away first.
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

// isOtherNameOf tells whether an attachment is, or may be, of an existing disk by the
// name of the other of the two drivers that attach such disks.
func isOtherNameOf(volume Volume, attachment Attachment) bool {
	object := attachment.Object
	if object.Spec.Attacher == volume.Driver || object.Spec.Attacher != stowagev1alpha1.GCEDriver && object.Spec.Attacher != googleDriver {
		return false
	}
	own, other := volume.Source.PersistentVolumeName, object.Spec.Source.PersistentVolumeName
	return own != nil && other != nil && *own == *other || mayBeSameDisk(volume, object.Spec.Attacher, attachment.Volume.Handle)
}

// isOff tells of a node that somebody promised that its machine is off.
func (c *comparison) isOff() bool {
	condition := ConditionOf(c.Node)
	return condition.OutOfService && !condition.Ready
}

// settling is how long the node may still take to tell what it uses.
func (c *comparison) settling(object *storagev1.VolumeAttachment) time.Duration {
	if !object.CreationTimestamp.Before(&c.Node.CreationTimestamp) {
		return 0
	}
	return c.Node.CreationTimestamp.Add(settles).Sub(c.Now)
}

// understand finds out what a name in volumesAttached stands for.
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
