package diskagent

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
)

// setUnrecorded sets in memory which volumes on a disk have no NodeVolume. After an error
// the list stays as it was, unless the disk is another.
func setUnrecorded(disk *stowagev1alpha1.NodeDisk, before *stowagev1alpha1.DiskIdentity, disks identity.Disks, recorded func() (map[string]bool, error)) error {
	if before != nil && disk.Status.Identity != nil && before.ID != disk.Status.Identity.ID {
		disk.Status.Unrecorded = nil
	}
	found, err := disks.Unrecorded(identity.Disk{Path: string(disk.Spec.Path), Known: disk.Status.Identity}, recorded)
	if err != nil {
		return fmt.Errorf("looking for volumes without a NodeVolume: %w", err)
	}
	disk.Status.Unrecorded = found
	return nil
}

// volumeNames lists the names of the NodeVolumes in the folder of a disk.
func volumeNames(ctx context.Context, volumes client.Reader, of *stowagev1alpha1.NodeDisk) (map[string]bool, error) {
	list := &stowagev1alpha1.NodeVolumeList{}
	if err := volumes.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the node's volumes: %w", err)
	}
	names := map[string]bool{}
	for i := range list.Items {
		if volume := &list.Items[i]; volume.Spec.NodeName == of.Spec.NodeName && volume.Spec.Path == of.Spec.Path {
			names[volume.Name] = true
		}
	}
	return names, nil
}
