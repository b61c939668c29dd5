package recycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/uses"
)

// whyNotRecyclable returns why a volume cannot be emptied, or "".
func (r *Recycler) whyNotRecyclable(pv *corev1.PersistentVolume) string {
	switch {
	case pathOnNode(pv) != "":
		return whyNotOnNode(pv)
	case pv.Spec.NFS == nil:
		return "Stowage empties no volumes but those of spec.nfs, spec.hostPath and spec.local"
	case pv.Spec.NFS.ReadOnly:
		return "the volume is read-only"
	case r.storage.Recycler == nil:
		return "nothing here empties volumes"
	default:
		return ""
	}
}

// checkUnused returns an error, from live reads, if the data of a volume to be recycled is in
// use, or belongs to another volume, too.
func (r *Recycler) checkUnused(ctx context.Context, pv *corev1.PersistentVolume) error {
	ref := pv.Spec.ClaimRef
	// A pod may still have the volume mounted after its containers ended.
	used, err := uses.UsedByPod(ctx, r.live, stowagev1alpha1.ClaimReference{Namespace: ref.Namespace, Name: ref.Name}, uses.IsFinished)
	switch {
	case err != nil:
		return err
	case used:
		return fmt.Errorf("the data of volume %s stays: %w", pv.Name, uses.ErrKept)
	default:
		return r.checkApart(ctx, pv)
	}
}

// checkApart returns an error if another volume, or a StorageBackend, is in the directory of a
// volume, or around it.
func (r *Recycler) checkApart(ctx context.Context, pv *corev1.PersistentVolume) error {
	volumes, backends := &corev1.PersistentVolumeList{}, &stowagev1alpha1.StorageBackendList{}
	for _, list := range []client.ObjectList{volumes, backends} {
		if err := r.live.List(ctx, list); err != nil {
			return fmt.Errorf("listing what may be in the directory of volume %s: %w", pv.Name, err)
		}
	}
	mine := directoryOf(pv)
	for i := range volumes.Items {
		if other := &volumes.Items[i]; other.UID != pv.UID && mine.meets(directoryOf(other)) {
			return backend.Conflict.Errorf("volume %s has data in the directory of volume %s, or around it: "+
				"delete it first, or set the policy of %s to Retain", other.Name, pv.Name, pv.Name)
		}
	}
	for i := range backends.Items {
		if mine.meets(directoryOfBackend(&backends.Items[i])) {
			return backend.Conflict.Errorf("StorageBackend %s has volumes in the directory of volume %s, or around it: "+
				"set the policy of %s to Retain", backends.Items[i].Name, pv.Name, pv.Name)
		}
	}
	return nil
}

// confirmRecycling decides again, after the target directory of the data was prepared. The
// volume, and everything else that decides, must be unchanged.
func (r *Recycler) confirmRecycling(ctx context.Context, decided *corev1.PersistentVolume) error {
	current := &corev1.PersistentVolume{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(decided), current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading volume %s: %w", decided.Name, err)
	}
	if current.UID != decided.UID || current.ResourceVersion != decided.ResourceVersion {
		return backend.InProgress.Errorf("volume %s has changed: it is read again", decided.Name)
	}
	return r.checkUnused(ctx, current)
}

// recyclable reports whether a volume must be emptied for the next claim.
func recyclable(pv *corev1.PersistentVolume) bool {
	return pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle &&
		pv.DeletionTimestamp.IsZero() && pv.Status.Phase == corev1.VolumeReleased && uses.WasClaimed(pv)
}
