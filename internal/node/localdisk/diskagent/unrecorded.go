package diskagent

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
)

// lookForUnrecorded says in memory which volumes on a disk no NodeVolume has. While that
// can't be found out, it is as it was; of another disk it says nothing.
func (r *Reconciler) lookForUnrecorded(ctx context.Context, stored, disk *stowagev1alpha1.NodeDisk) error {
	if before := stored.Status.Identity; before != nil && disk.Status.Identity != nil && before.ID != disk.Status.Identity.ID {
		disk.Status.Unrecorded = nil
	}
	found, err := r.Store.Disks.Unrecorded(identity.Disk{Path: string(disk.Spec.Path), Known: disk.Status.Identity}, func() (map[string]bool, error) {
		return r.namesAt(ctx, disk.Spec.Path)
	})
	if err != nil {
		return fmt.Errorf("looking for volumes without a NodeVolume: %w", err)
	}
	if !equality.Semantic.DeepEqual(found, disk.Status.Unrecorded) {
		disk.Status.Unrecorded = found
	}
	return nil
}

// namesAt are the names of the node's NodeVolumes in a folder.
func (r *Reconciler) namesAt(ctx context.Context, path stowagev1alpha1.AbsolutePath) (map[string]bool, error) {
	list := &stowagev1alpha1.NodeVolumeList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the node's volumes: %w", err)
	}
	names := map[string]bool{}
	for i := range list.Items {
		if volume := &list.Items[i]; volume.Spec.NodeName == r.NodeName && volume.Spec.Path == path {
			names[volume.Name] = true
		}
	}
	return names, nil
}
