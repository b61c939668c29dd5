package local

import (
	"cmp"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// sectorBytes is the unit of a block device: the size of an image is a multiple.
const sectorBytes = 512

// asImage says in a new LocalVolume what its image is to be like, if it is one. An fsType
// is chosen in place of the backend's.
func (b *localBackend) asImage(volume *stowagev1alpha1.LocalVolume, fsType string) {
	if volume.Spec.Layout != stowagev1alpha1.LayoutImage {
		return
	}
	volume.Spec.Allocation = b.spec.Allocation
	if volume.Spec.VolumeMode != corev1.PersistentVolumeBlock {
		volume.Spec.FSType = cmp.Or(fsType, b.spec.FSType)
	}
	volume.Spec.Capacity = possible(volume, volume.Spec.Capacity)
}

// possible is the least capacity that a volume can have, and that is no less than
// what is asked for. What can't be rounded up any more is more than the API allows.
func possible(volume *stowagev1alpha1.LocalVolume, asked resource.Quantity) resource.Quantity {
	over := asked.Value() % sectorBytes
	if volume.Spec.Layout != stowagev1alpha1.LayoutImage || over == 0 || asked.Value() > math.MaxInt64-sectorBytes {
		return asked
	}
	return *resource.NewQuantity(asked.Value()-over+sectorBytes, asked.Format)
}

// growsOnNode says whether a volume holds a file system that its node has to grow.
func growsOnNode(volume *stowagev1alpha1.LocalVolume) bool {
	return volume.Spec.Layout == stowagev1alpha1.LayoutImage && volume.Spec.VolumeMode != corev1.PersistentVolumeBlock
}
