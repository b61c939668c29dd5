package volumes

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Grower is a Plugin whose volumes can grow while pods use them.
type Grower interface {
	Plugin
	// CanGrow says whether a volume is mounted on this node, and may be written.
	CanGrow(table mount.Table, volume *corev1.PersistentVolume) bool
	// Grow makes what pods of this node see of a volume as large as its storage, and
	// returns that size in bytes. It is called until it succeeds, and may find what
	// an earlier call, cut off at any point, left. Errors that wrap ErrNotSupported
	// are final.
	Grow(ctx context.Context, volume *corev1.PersistentVolume) (int64, error)
}
