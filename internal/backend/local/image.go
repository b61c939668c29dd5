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

// setImage sets allocation and file system of a new NodeVolume, if it is an image.
func (b *localBackend) setImage(volume *stowagev1alpha1.NodeVolume, request backend.Request) {
	if volume.Spec.Layout == stowagev1alpha1.LayoutImage {
		volume.Spec.Allocation, volume.Spec.FSType = b.spec.Allocation, b.fsTypeOf(request)
	}
}

// fsTypeOf is the file system of a new image; "" for a device. That of the request replaces the backend's.
func (b *localBackend) fsTypeOf(request backend.Request) string {
	if request.VolumeMode == corev1.PersistentVolumeBlock {
		return ""
	}
	return cmp.Or(request.FSType, b.spec.FSType)
}

// maxCapacity is what the API of NodeVolumes allows.
var maxCapacity = resource.MustParse("4Ei")

// checkSize refuses more than the API of NodeVolumes allows.
func checkSize(capacity resource.Quantity) error {
	if capacity.Cmp(maxCapacity) > 0 {
		return backend.Invalid.Errorf("a local volume has %s at most: ask for no more than that, not for %s", maxCapacity.String(), capacity.String())
	}
	return nil
}

// roundUp is the least capacity that a volume can have and that is no less than the request. What
// can't be rounded up is more than the API allows.
func roundUp(volume *stowagev1alpha1.NodeVolume, capacity resource.Quantity) resource.Quantity {
	whole := capacity.Value()
	if over := whole % sectorBytes; volume.Spec.Layout == stowagev1alpha1.LayoutImage && over > 0 && whole <= math.MaxInt64-sectorBytes {
		whole += sectorBytes - over
	}
	rounded := *resource.NewQuantity(whole, capacity.Format)
	if rounded.Cmp(capacity) <= 0 {
		// It is whole, or too large to be counted.
		return capacity
	}
	return rounded
}

// growsOnNode reports whether a volume holds a file system that its node has to grow.
func growsOnNode(volume *stowagev1alpha1.NodeVolume) bool {
	return volume.Spec.Layout == stowagev1alpha1.LayoutImage && volume.Spec.VolumeMode != corev1.PersistentVolumeBlock
}
