package volumeagent

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
)

// diskFinder finds the NodeDisks of a node's volumes, in the cache.
type diskFinder struct {
	nodeName string
	client   client.Reader
}

// onDisk returns what the store needs of a volume, with the accepted disk of its backend, if
// there is one.
func (f diskFinder) onDisk(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (layout.Volume, error) {
	of := spec.VolumeOf(volume)
	disk, err := f.findDisk(ctx, volume)
	if err == nil && disk != nil {
		of.Disk = disk.Status.Identity
	}
	return of, err
}

// onAcceptedDisk is onDisk for a volume that is to be made. Without an accepted disk it
// returns an error with the reason.
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
		return of, fmt.Errorf("%w for the first inspection of the disk", layout.ErrPending)
	case ready.Reason == stowagev1alpha1.ReasonPathOutsideBase:
		return of, fmt.Errorf("using %s: %w", disk.Spec.Path, safepath.ErrOutside)
	default:
		return of, fmt.Errorf("NodeDisk %s isn't Ready: %s", disk.Name, ready.Message)
	}
}

// findDisk finds the NodeDisk of a volume; nil while there is none.
func (f diskFinder) findDisk(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (*stowagev1alpha1.NodeDisk, error) {
	return f.findDiskWhere(ctx, func(disk *stowagev1alpha1.NodeDisk) bool {
		return disk.Spec.Backend == volume.Spec.Backend && disk.Spec.Path == volume.Spec.Path
	})
}

// findDiskWhere finds the first of the node's disks that matches; else nil. The object is the
// cache's own: it must not be changed.
func (f diskFinder) findDiskWhere(ctx context.Context, matches func(*stowagev1alpha1.NodeDisk) bool) (*stowagev1alpha1.NodeDisk, error) {
	disks := &stowagev1alpha1.NodeDiskList{}
	if err := f.client.List(ctx, disks, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the node's disks: %w", err)
	}
	for i := range disks.Items {
		if disk := &disks.Items[i]; disk.Spec.NodeName == f.nodeName && matches(disk) {
			return disk, nil
		}
	}
	return nil, nil //nolint:nilnil // none is an answer
}
