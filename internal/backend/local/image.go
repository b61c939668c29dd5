package local

import (
	"cmp"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// sectorBytes is the unit of a block device: the size of an image is a multiple.
const sectorBytes = 512

// asImage says in a new NodeVolume what its image is to be like, if it is one. An fsType
// is chosen in place of the backend's.
func (b *localBackend) asImage(volume *stowagev1alpha1.NodeVolume, fsType string) {
	if volume.Spec.Layout != stowagev1alpha1.LayoutImage {
		return
	}
	volume.Spec.Allocation = b.spec.Allocation
	if volume.Spec.VolumeMode != corev1.PersistentVolumeBlock {
		volume.Spec.FSType = cmp.Or(fsType, b.spec.FSType)
	}
}

// mostCapacity is what the API of NodeVolumes allows.
var mostCapacity = resource.MustParse("4Ei")

// checkSize refuses more than the API of NodeVolumes allows.
func checkSize(asked resource.Quantity) error {
	if asked.Cmp(mostCapacity) > 0 {
		return backend.Invalid.Errorf("a local volume has %s at most: ask for no more than that, not for %s", mostCapacity.String(), asked.String())
	}
	return nil
}

// possible is the least capacity that a volume can have, and that is no less than
// what is asked for. What can't be rounded up any more is more than the API allows.
func possible(volume *stowagev1alpha1.NodeVolume, asked resource.Quantity) resource.Quantity {
	whole := asked.Value()
	if over := whole % sectorBytes; volume.Spec.Layout == stowagev1alpha1.LayoutImage && over > 0 && whole <= math.MaxInt64-sectorBytes {
		whole += sectorBytes - over
	}
	rounded := *resource.NewQuantity(whole, asked.Format)
	if rounded.Cmp(asked) <= 0 {
		// It is whole, or too large to be counted.
		return asked
	}
	return rounded
}

// growsOnNode says whether a volume holds a file system that its node has to grow.
func growsOnNode(volume *stowagev1alpha1.NodeVolume) bool {
	return volume.Spec.Layout == stowagev1alpha1.LayoutImage && volume.Spec.VolumeMode != corev1.PersistentVolumeBlock
}
