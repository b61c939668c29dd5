// Package spec reads NodeVolumes: which volume each requests, whether this version of Stowage
// supports it, and which other volumes its node has. It refuses names that aren't made from the
// claim: a directory of such a name may belong to other software.
package spec

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// defaultFSType is the file system of images that name none.
const defaultFSType = "ext4"

// CheckSpec returns an error where this version doesn't support a volume.
func CheckSpec(volume *stowagev1alpha1.NodeVolume) error {
	if volume.Spec.VolumeMode == corev1.PersistentVolumeBlock && volume.Spec.Layout != stowagev1alpha1.LayoutImage {
		return fmt.Errorf("volumeMode Block is %w in layout %s: use Filesystem, or layout Image", layout.ErrNotSupported, volume.Spec.Layout)
	}
	return checkName(volume)
}

// checkName returns ErrInvalid unless Stowage makes the name for this owner: pvc-<uid of the claim>, or
// pvc-<uid>-<n> for a further attempt; snapshot-<uid> for the content of a VolumeSnapshot. A directory of
// that name belongs to the volume, and may be adopted, and removed.
func checkName(volume *stowagev1alpha1.NodeVolume) error {
	if IsSnapshot(volume) {
		snapshot := volume.Spec.SnapshotUID
		if volume.Name != "snapshot-"+string(snapshot) {
			return fmt.Errorf("%w: its name must be snapshot-%s, after the VolumeSnapshot that it is for", layout.ErrInvalid, snapshot)
		}
		return nil
	}
	uid := string(volume.Spec.ClaimRef.UID)
	attempt, found := strings.CutPrefix(volume.Name, "pvc-"+uid)
	number, numbered := strings.CutPrefix(attempt, "-")
	if uid == "" || !found || strings.Trim(number, "0123456789") != "" || numbered != (number != "") || !numbered && attempt != "" {
		return fmt.Errorf("%w: its name must be pvc-%s, after the claim that it is for", layout.ErrInvalid, uid)
	}
	return nil
}

// IsSnapshot reports whether a volume is the content of a VolumeSnapshot, which no pod uses.
func IsSnapshot(volume *stowagev1alpha1.NodeVolume) bool { return volume.Spec.SnapshotUID != "" }

// IsProvisioned reports whether a volume was made.
func IsProvisioned(volume *stowagev1alpha1.NodeVolume) bool {
	return meta.IsStatusConditionTrue(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition)
}

// Others lists a node's volumes but for one, from the cache. The cache may lack what this process
// wrote, but not what it read: it has every volume that was reconciled.
func Others(ctx context.Context, reader client.Reader, node, volume string) layout.Lister {
	return func() ([]layout.Volume, error) {
		list := &stowagev1alpha1.NodeVolumeList{}
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the node's volumes: %w", err)
		}
		others := make([]layout.Volume, 0, len(list.Items))
		for i := range list.Items {
			other := &list.Items[i]
			if other.Name != volume && other.Spec.NodeName == node && checkName(other) == nil {
				known := VolumeOf(other)
				// The directory of a volume that is being removed may be gone already.
				known.Removing = known.Provisioned && !other.DeletionTimestamp.IsZero()
				known.Provisioned = known.Provisioned && !known.Removing
				others = append(others, known)
			}
		}
		return others, nil
	}
}

// VolumeOf returns what the store needs of a NodeVolume.
func VolumeOf(volume *stowagev1alpha1.NodeVolume) layout.Volume {
	of := layout.Volume{
		Path:        string(volume.Spec.Path),
		Name:        volume.Name,
		Owner:       volume.Spec.ClaimRef,
		Bytes:       volume.Spec.Capacity.Value(),
		Provisioned: IsProvisioned(volume),
		Copy:        volume.Spec.Source != "",
	}
	if volume.Status.Used != nil {
		of.Used = volume.Status.Used.Value()
	}
	if volume.Spec.Layout == stowagev1alpha1.LayoutImage {
		of.Image = imageOf(volume)
	}
	if volume.Status.Capacity != nil {
		of.Has = volume.Status.Capacity.Value()
	}
	if volume.Spec.ReservedCapacity != nil {
		of.Reserved = volume.Spec.ReservedCapacity.Value()
	}
	return of
}

func imageOf(volume *stowagev1alpha1.NodeVolume) *layout.Image {
	image := &layout.Image{Sparse: volume.Spec.Allocation == stowagev1alpha1.AllocationSparse}
	if volume.Spec.VolumeMode != corev1.PersistentVolumeBlock {
		image.FSType = cmp.Or(volume.Spec.FSType, defaultFSType)
	}
	return image
}
