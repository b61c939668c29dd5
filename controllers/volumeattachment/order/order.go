// Package order decides which of the attachments of the same storage comes first, where one node at a
// time can have it. It writes nothing.
package order

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/features"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Candidate is an attachment that is prepared, and about to attach.
type Candidate struct {
	Attachment       *storagev1.VolumeAttachment
	PersistentVolume *corev1.PersistentVolume
	// Volume is the PersistentVolume as the driver knows it. It differs for an in-tree disk.
	Volume *corev1.PersistentVolume
}

// Order compares a candidate with the other attachments of its storage.
type Order struct {
	cache    client.Reader
	shared   liveread.Reads
	prepared *attachintent.Writes
	// ordered is true if caches apply changes in order, those of a new list at once.
	ordered bool
}

// New returns the order of the attachments in a cluster.
func New(deps reconciler.Dependencies) Order {
	return Order{cache: deps.Client, shared: deps.Reads, prepared: deps.Prepared, ordered: features.FeatureGates().Enabled(features.AtomicFIFO)}
}

// Confirm reports whether a candidate still exists and is prepared. If one node at a time can have
// its storage, and another attachment of it comes first, the error is a backend.Conflict. All
// managers agree on which is older, so of two leaders, and of two nodes, one attaches. Where two were
// created in the same second, or API servers' clocks differ, the backend's own refusal decides.
func (o Order) Confirm(ctx context.Context, c Candidate) (exists bool, err error) {
	names := VolumesLike(ctx, o.cache, c.PersistentVolume.Name)
	all, proven := o.cached(ctx, c, names)
	if !proven {
		if all, err = o.shared.Attachments.Get(ctx, struct{}{}); err != nil {
			return false, err
		}
	}
	if !slices.ContainsFunc(all.Volume[c.PersistentVolume.Name], c.isCurrent) {
		return false, nil
	}
	if err := c.checkGoogle(all); err != nil || volume.AllowsMultiAttach(c.Volume.Spec.AccessModes) {
		return true, err
	}
	var others []*storagev1.VolumeAttachment
	for _, name := range names {
		others = append(others, all.Volume[name]...)
	}
	for _, other := range append(others, all.Handle[index.HandleOf(c.Volume)[0]]...) {
		if err := c.checkOlder(other); err != nil {
			return true, err
		}
	}
	return true, nil
}

// isCurrent reports whether an object is the candidate, and not being deleted.
func (c Candidate) isCurrent(object *storagev1.VolumeAttachment) bool {
	return object.UID == c.Attachment.UID && object.DeletionTimestamp.IsZero() &&
		controllerutil.ContainsFinalizer(object, attachintent.Finalizer(object.Spec.Attacher))
}

// checkOlder returns an error if another attachment of the storage came first. It is older, or
// already attached, which counts even if both were created in the same second.
func (c Candidate) checkOlder(other *storagev1.VolumeAttachment) error {
	if other.UID == c.Attachment.UID || other.Spec.Attacher != c.Attachment.Spec.Attacher ||
		!other.Status.Attached && attach.Older(other, c.Attachment) > 0 {
		return nil
	}
	state := "is attached to"
	if !other.DeletionTimestamp.IsZero() {
		state = "is being detached from"
	}
	return backend.Conflict.Errorf("volume %s %s node %s, and one node at a time can have it (VolumeAttachment %s)",
		c.PersistentVolume.Name, state, other.Spec.NodeName, other.Name)
}

// checkGoogle returns an error if an attachment of Google's driver exists for the same
// in-tree disk. On the same node it always does, on others unless this volume is read-only.
// Google's attacher does not check for other attachments, so this one must.
func (c Candidate) checkGoogle(all liveread.Attachments) error {
	if !c.isInTreeDisk() {
		return nil
	}
	for _, other := range all.Google {
		if !attach.UsesSameDisk(other, c.Volume) || volume.IsReadOnly(c.Volume) && other.Spec.NodeName != c.Attachment.Spec.NodeName {
			continue
		}
		return backend.Conflict.Errorf("disk %s is attached to node %s by CSI driver %s, or about to be (VolumeAttachment %s): waiting until that is gone",
			c.Volume.Spec.CSI.VolumeHandle, other.Spec.NodeName, attachintent.GoogleDriver, other.Name)
	}
	return nil
}

func (c Candidate) isInTreeDisk() bool {
	return attachintent.IsInTreeDisk(c.Attachment, c.PersistentVolume)
}
