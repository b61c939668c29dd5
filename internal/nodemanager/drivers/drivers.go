// Package drivers is what the node side of a CSI driver does: the Node service of the
// Container Storage Interface, in Go. There is one implementation for each of Stowage's
// drivers: packages local and gcepd beside it, and volumes/nfs.
//
// Two callers have it: package csi, with the calls of a kubelet, and, on a node without
// one, the volume type for csi volumes, which makes the calls that a kubelet would make.
// A driver doesn't decide when a volume is staged, and it reads nothing from the API
// server.
package drivers

import (
	"context"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Driver is the node side of one CSI driver. Its methods are called for different
// volumes at once, but only one at a time for one volume. Each is called until it
// succeeds, and may find what an earlier call, cut off at any point, left. Nothing is
// remembered from one call to the next but in the kernel's mount table, its devices, and
// records in the agent's own folder. They return when their work is over, also if nobody
// waits for it any more.
//
// Errors are told apart by what they wrap: volumes.ErrInvalid, ErrNotSupported,
// ErrNotFound, ErrNotStaged, ErrInUse, ErrOtherVolume, ErrGone, remote.ErrSilent,
// remote.ErrBusy, remote.ErrDetached, and those of contexts. After one of the first six of Stage or Publish
// a kubelet takes nothing to be left of the volume there, and may never ask for it to be
// taken away.
//
// Specs have the handle for the name of their PersistentVolume. Those that a kubelet's
// call is made into have no Pod, and no more of the PersistentVolume than the driver, the
// handle, the attributes, the file system, the mount options and the access modes.
type Driver interface {
	// Name is the driver's, such as nfs.stowage.dev.
	Name() string
	// Stage makes a volume usable on the node, at a directory of the kubelet's that
	// exists and is the volume's until Unstage. A volume that is staged there already is
	// a success; another one there wraps volumes.ErrOtherVolume.
	Stage(ctx context.Context, spec volumes.Spec, staging string) error
	// Unstage takes away all that Stage made, and leaves the directory, empty, or none.
	// What isn't staged is a success; what pods still use is an error.
	Unstage(ctx context.Context, handle, staging string) error
	// Publish makes a staged volume visible at target, for one pod. The parent of target
	// exists, target may. One that is published there already, with the same access, is
	// a success, with another one it wraps volumes.ErrOtherVolume. A volume that is
	// ReadWriteOncePod and published elsewhere wraps volumes.ErrInUse. A kubelet that
	// tries again may leave out the attachment.
	Publish(ctx context.Context, spec volumes.Spec, staging, target string) error
	// Unpublish takes a volume away from a pod, and removes target. What isn't there is a
	// success.
	Unpublish(ctx context.Context, handle, target string) error
	// Check is why a volume that is staged, or published, at a path is abnormal, and nil
	// if it is well. Without a path, it is that of the volume wherever it is on the node.
	// What isn't there wraps volumes.ErrNotFound. It waits for no server, and may be
	// called while another method runs for the volume.
	Check(ctx context.Context, handle, path string) error
}

// Grower is a Driver whose volumes need a step on the node to grow.
type Grower interface {
	Driver
	// Grow makes a volume that is staged, or published, at a path as large as its storage
	// is by now, and returns the size of that in bytes. What isn't there wraps
	// volumes.ErrNotFound.
	Grow(ctx context.Context, handle, path string) (int64, error)
}

// Inliner is a Driver that serves volumes which pods name themselves. They aren't
// staged.
type Inliner interface {
	Driver
	// PublishInline makes a pod's own volume, and makes it visible at target. The spec has
	// Pod (name, namespace and UID only) and Volume, whose source is CSI, and no
	// PersistentVolume nor Backend.
	PublishInline(ctx context.Context, spec volumes.Spec, handle, target string) error
	// UnpublishInline takes it away and removes it. What isn't there is a success.
	UnpublishInline(ctx context.Context, handle, target string) error
	// IsInline tells whether a handle is of a volume that a pod named itself.
	IsInline(handle string) bool
}
