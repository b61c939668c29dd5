package volumeagent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
	"github.com/stowage-dev/stowage/internal/patch"
)

// errStale is a read that isn't true any more: the next reconcile reads again.
var errStale = errors.New("the NodeVolume has changed")

// remover removes the data of volumes, and then their finalizers.
type remover struct {
	client client.Client
	live   client.Reader
	store  *store.Store
	finder diskFinder
	copies copySources
	// written gets the statuses that are written.
	written *ownWrites
	// released has the UIDs of the NodeVolumes whose finalizers were removed, by name, until the cache shows that they are gone.
	released *sync.Map
}

// removeData removes what is on the disk. The next call continues after ErrUnfinished, or
// after a crash. It is errStale if the object has changed.
func (r remover) removeData(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	if err := checkOrdered(r.store.Base, volume); err != nil {
		return err
	}
	if err := r.copies.awaitCopies(ctx, volume); err != nil {
		return err
	}
	// Nothing was made for a spec that isn't supported.
	if supported := spec.CheckSpec(volume) == nil; !supported {
		return nil
	}
	there, err := r.finder.onDisk(ctx, volume)
	if err == nil {
		err = r.begin(ctx, volume, there)
	}
	if err == nil {
		err = r.store.Remove(ctx, there)
	}
	if layout.IsOutside(err) && !spec.IsProvisioned(volume) {
		return nil
	}
	return err
}

// begin writes status.removing before any data is touched, with the version of a live read.
// Until then the manager may withdraw the order: that write and this one exclude each other.
// A removal that continues is checked against the live object, too. In a stale cache, an
// object that was created again looks like the one before.
func (r remover) begin(ctx context.Context, volume *stowagev1alpha1.NodeVolume, there layout.Volume) error {
	if !volume.Status.Removing {
		if err := r.store.CheckRemovable(ctx, there); err != nil {
			return err
		}
	}
	live := &stowagev1alpha1.NodeVolume{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(volume), live); err != nil {
		if apierrors.IsNotFound(err) {
			return errStale
		}
		return fmt.Errorf("reading NodeVolume %s: %w", volume.Name, err)
	}
	if live.UID != volume.UID || live.DeletionTimestamp.IsZero() || checkOrdered(r.store.Base, live) != nil {
		return errStale
	}
	if !live.Status.Removing {
		before := live.DeepCopy()
		live.Status.Removing = true
		r.written.note(live)
		err := r.client.Status().Patch(ctx, live, patch.Fenced(before))
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return errStale
		}
		if err != nil {
			return fmt.Errorf("writing that the removal of NodeVolume %s begins: %w", volume.Name, err)
		}
	}
	volume.Status.Removing, volume.ResourceVersion = true, live.ResourceVersion
	return nil
}

// removeFinalizer lets the object go. It is errStale if the object has changed.
func (r remover) removeFinalizer(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	before := volume.DeepCopy()
	controllerutil.RemoveFinalizer(volume, stowagev1alpha1.NodeVolumeFinalizer)
	err := r.client.Patch(ctx, volume, patch.Fenced(before))
	if apierrors.IsConflict(err) {
		return errStale
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of NodeVolume %s: %w", volume.Name, err)
	}
	r.released.Store(volume.Name, volume.UID)
	return nil
}

// hasReleased reports whether a volume has no finalizer of the agent's any more. A cache may still have it: the API server adds
// none to an object that is being deleted.
func (r remover) hasReleased(volume *stowagev1alpha1.NodeVolume) bool {
	released, _ := r.released.Load(volume.Name)
	return released == volume.UID || !controllerutil.ContainsFinalizer(volume, stowagev1alpha1.NodeVolumeFinalizer)
}

// forget drops a volume that is gone.
func (r remover) forget(name string) { r.released.Delete(name) }

// checkOrdered returns ErrKept for data without an order to remove it: a person deleted the
// object, or the whole CRD.
func checkOrdered(base layout.Base, volume *stowagev1alpha1.NodeVolume) error {
	supported := spec.CheckSpec(volume) == nil
	if volume.Spec.RemoveData || !supported && !spec.IsProvisioned(volume) {
		return nil
	}
	there := spec.VolumeOf(volume)
	if !spec.IsProvisioned(volume) {
		exists, err := base.Exists(there)
		if layout.IsOutside(err) {
			return nil
		}
		if err != nil || !exists {
			return err
		}
	}
	return keptIn(volume, there.Directory())
}

// outlivesObject reports whether the data of a deleted object stays. Such a volume is
// maintained like any other: pods may use it.
func outlivesObject(volume *stowagev1alpha1.NodeVolume) bool {
	return volume.DeletionTimestamp != nil && !volume.Spec.RemoveData && spec.IsProvisioned(volume) && spec.CheckSpec(volume) == nil
}

// keptIn is the ErrKept of a directory, with what the user can do.
func keptIn(volume *stowagev1alpha1.NodeVolume, directory string) error {
	why := "nothing but deleting its claim removes it"
	if volume.Labels[stowagev1alpha1.RetainedLabel] != "" {
		why = "its PersistentVolume says Retain"
	}
	return fmt.Errorf("%w in %s, because %s: to remove it all the same set spec.removeData to true; "+
		"to keep it, and let this object go, remove the finalizer %s", layout.ErrKept, directory, why, stowagev1alpha1.NodeVolumeFinalizer)
}
