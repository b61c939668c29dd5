package volumes

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Grower is a Plugin whose volumes can grow while pods use them.
type Grower interface {
	Plugin
	// CanGrow reports whether a volume is mounted on this node, and not read-only.
	CanGrow(table mount.Table, volume *corev1.PersistentVolume) bool
	// Grow grows the volume's file system to the size of its storage, and returns that size in
	// bytes. It is called until it succeeds, also after a call that was interrupted at any point.
	// Errors that wrap ErrNotSupported are final.
	Grow(ctx context.Context, volume *corev1.PersistentVolume) (int64, error)
}
