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

// Look measures the volumes that are due at a time.
func (p Plugin) Look(ctx context.Context, now time.Time, tell volumes.Tell) {
	p.sizes.look(ctx, now, tell)
}
