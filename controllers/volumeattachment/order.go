package volumeattachment

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wake"
)

// attaching is the state of one attach.
type attaching struct {
	attachment *storagev1.VolumeAttachment
	pv         *corev1.PersistentVolume
	// volume is the PersistentVolume as the driver knows it. It differs from pv for an in-tree
	// disk.
	volume   *corev1.PersistentVolume
	node     *corev1.Node
	attacher backend.Attacher
	// driverID is the id that the CSI driver gave the node. Stowage's own drivers have none.
	driverID string
	// callFailed is true if the backend's call returned an error.
	callFailed bool
	// done is true if nothing is left to do in this pass.
	done bool
}

// volumesLike returns the names of the PersistentVolumes that refer to the same storage as the
// given one, including it.
func volumesLike(ctx context.Context, cache client.Reader, name string) []string {
	pv, names := &corev1.PersistentVolume{}, []string{name}
	if cache.Get(ctx, client.ObjectKey{Name: name}, pv, wake.Unhurried, client.UnsafeDisableDeepCopy) != nil || pv.Spec.CSI == nil {
		return names
	}
	volumes, err := index.VolumesOf(ctx, cache, index.HandleOf(pv)[0], wake.Unhurried)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing volumes", "volume", name)
	}
	for i := range volumes {
		if volumes[i].Name != name {
			names = append(names, volumes[i].Name)
		}
	}
	return names
}

// isCurrent reports whether a live object is the attachment, and not being deleted.
func (a *attaching) isCurrent(live *storagev1.VolumeAttachment) bool {
	return live.UID == a.attachment.UID && live.DeletionTimestamp.IsZero() &&
		controllerutil.ContainsFinalizer(live, attachintent.Finalizer(live.Spec.Attacher))
}

// checkOlder returns an error if another attachment of the storage came first. It is older, or
// already attached, which counts even if both were created in the same second.
func (a *attaching) checkOlder(other *storagev1.VolumeAttachment) error {
	if other.UID == a.attachment.UID || other.Spec.Attacher != a.attachment.Spec.Attacher ||
		!other.Status.Attached && attach.Older(other, a.attachment) > 0 {
		return nil
	}
	state := "is attached to"
	if !other.DeletionTimestamp.IsZero() {
		state = "is being detached from"
	}
	return backend.Conflict.Errorf("volume %s %s node %s, and one node at a time can have it (VolumeAttachment %s)",
		a.pv.Name, state, other.Spec.NodeName, other.Name)
}

// checkGoogle returns an error if an attachment of Google's driver exists for the same
// in-tree disk. On the same node it always does, on others unless this volume is read-only.
// Google's attacher does not check for other attachments, so this one must.
func (a *attaching) checkGoogle(all liveread.Attachments) error {
	if !attachintent.IsInTreeDisk(a.attachment, a.pv) {
		return nil
	}
	for _, other := range all.Google {
		if !attach.UsesSameDisk(other, a.volume) || volume.IsReadOnly(a.volume) && other.Spec.NodeName != a.attachment.Spec.NodeName {
			continue
		}
		return backend.Conflict.Errorf("disk %s is attached to node %s by CSI driver %s, or about to be (VolumeAttachment %s): waiting until that is gone",
			a.volume.Spec.CSI.VolumeHandle, other.Spec.NodeName, attachintent.GoogleDriver, other.Name)
	}
	return nil
}
