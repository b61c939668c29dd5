package volumeagent

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
)

// diskFinder finds the NodeDisks of a node's volumes.
type diskFinder struct {
	nodeName string
	client   client.Reader
}

// onDisk is what the store needs to know of a volume, with the disk that its
// backend's folder was accepted on, if one was.
func (f diskFinder) onDisk(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (layout.Volume, error) {
	of := spec.VolumeOf(volume)
	disk, err := f.findDisk(ctx, volume)
	if err == nil && disk != nil {
		of.Disk = disk.Status.Identity
	}
	return of, err
}

// onAcceptedDisk is the same for a volume that is to be made: while no disk was
// accepted it says why.
func (f diskFinder) onAcceptedDisk(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (layout.Volume, error) {
	of := spec.VolumeOf(volume)
	disk, err := f.findDisk(ctx, volume)
	if err != nil {
		return of, err
	}
	if disk == nil {
		return of, fmt.Errorf("%w for the manager to make a NodeDisk of backend %s for this node, at %s: see whether the backend exists and selects the node",
			layout.ErrPending, volume.Spec.Backend, volume.Spec.Path)
	}
	if of.Disk = disk.Status.Identity; of.Disk != nil {
		return of, nil
	}
	ready := meta.FindStatusCondition(disk.Status.Conditions, stowagev1alpha1.ReadyCondition)
	switch {
	case ready == nil || ready.Status == metav1.ConditionTrue:
		return of, fmt.Errorf("%w for the disk to be looked at", layout.ErrPending)
	case ready.Reason == stowagev1alpha1.ReasonPathOutsideBase:
		return of, fmt.Errorf("using %s: %w", disk.Spec.Path, safepath.ErrOutside)
	default:
		return of, fmt.Errorf("NodeDisk %s isn't Ready: %s", disk.Name, ready.Message)
	}
}

// findDisk finds the disk that a volume is to lie on; nil while nobody made its
// NodeDisk.
func (f diskFinder) findDisk(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (*stowagev1alpha1.NodeDisk, error) {
	return f.findDiskWhere(ctx, func(disk *stowagev1alpha1.NodeDisk) bool {
		return disk.Spec.Backend == volume.Spec.Backend && disk.Spec.Path == volume.Spec.Path
	})
}

// findDiskWhere finds the first of the node's disks that is one of those; else nil. It is
// the cache's own, which nobody may change.
func (f diskFinder) findDiskWhere(ctx context.Context, is func(*stowagev1alpha1.NodeDisk) bool) (*stowagev1alpha1.NodeDisk, error) {
	disks := &stowagev1alpha1.NodeDiskList{}
	if err := f.client.List(ctx, disks, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the node's disks: %w", err)
	}
	for i := range disks.Items {
		if disk := &disks.Items[i]; disk.Spec.NodeName == f.nodeName && is(disk) {
			return disk, nil
		}
	}
	return nil, nil //nolint:nilnil // none is an answer
}

// CheckDisk makes sure that the volume in a directory lies on the disk that its
// backend's folder was accepted on. Whoever shows it to a pod asks: in a copy of the
// disk, or an earlier state of it, the volume is there, too. Where no backend has the
// folder, nobody knows of a disk.
func (r *Reconciler) CheckDisk(ctx context.Context, directory string) error {
	folder := filepath.Dir(directory)
	disk, err := r.finder.findDiskWhere(ctx, func(disk *stowagev1alpha1.NodeDisk) bool {
		return string(disk.Spec.Path) == folder && disk.Status.Identity != nil
	})
	if disk == nil || err != nil {
		return err
	}
	return r.Store.Disks.CheckDisk(layout.Volume{Path: folder, Disk: disk.Status.Identity})
}
