package emptydir

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// MemoryOf is how much memory a volume may have.
func MemoryOf(spec volumes.Spec) int64 { return memoryOf(spec) }

// PageOf is the size of the pages of a medium.
func PageOf(medium corev1.StorageMedium, pod *corev1.Pod) (int64, error) { return pageOf(medium, pod) }

// MeasureDue measures the volumes that are due at a time.
func (p Plugin) MeasureDue(ctx context.Context, now time.Time, wake volumes.Wake) {
	p.sizes.measureDue(ctx, now, wake)
}
