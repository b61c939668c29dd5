// Package drivers defines the node side of a CSI driver: the Node service of the Container
// Storage Interface, in Go. Each of Stowage's drivers implements it: packages local, gcepd and nfs
// below it. Package socket implements it for drivers of other projects, by calls to their sockets.
//
// Package csi calls it with the calls of a kubelet. On a node without one, the volume type for
// csi volumes makes the calls that a kubelet would make. A driver doesn't decide when a volume is
// staged, and reads nothing from the API server.
package drivers

import (
	"context"
	"slices"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// IsOwn reports whether a driver is Stowage's, which the agent itself serves.
func IsOwn(name string) bool {
	return slices.Contains([]string{stowagev1alpha1.LocalDriver, stowagev1alpha1.GCEDriver, stowagev1alpha1.NFSDriver}, name)
}

// Driver is the node side of one CSI driver. Callers may call it for several volumes at once, but
// make only one call at a time for one volume. They repeat each call until it succeeds: it may
// find what an earlier call left, which was cut off at any point. Between calls, all state is in
// the kernel's mount table, its devices, and records in the agent's own folder. A method returns
// when its work is over, even if its caller no longer waits.
//
// Errors differ by what they wrap: volumes.ErrInvalid, ErrNotSupported, ErrNotFound,
// ErrNotStaged, ErrInUse, ErrOtherVolume, ErrGone, remote.ErrSilent, remote.ErrBusy,
// remote.ErrDetached, and those of contexts. After one of the first six of Stage or Publish, a
// kubelet assumes that nothing of the volume is left there. It may never call Unstage or
// Unpublish then.
//
// In a spec, the PersistentVolume's name is the handle. A spec that is made from a kubelet's call
// has no Pod. Its PersistentVolume has only the driver, the handle, the attributes, the file
// system, the mount options and the access modes. The access in Stage's spec is that of the volume
// for all pods; that in Publish's spec is one pod's.
type Driver interface {
	// Name returns the driver's name, such as nfs.stowage.dev.
	Name() string
	// Stage makes a volume usable on the node, at a directory of the kubelet's that exists and is
	// the volume's until Unstage. It succeeds if the volume is staged there already. If another
	// one is, the error wraps volumes.ErrOtherVolume.
	Stage(ctx context.Context, spec volumes.Spec, staging string) error
	// Unstage removes all that Stage made, and leaves the directory empty, or removes it. It
	// succeeds if the volume isn't staged, and fails while pods still use it.
	Unstage(ctx context.Context, handle, staging string) error
	// Publish makes a staged volume visible at target, for one pod. The parent of target exists,
	// target may. It succeeds if the volume is published there already with the same access. With
	// another access, the error wraps volumes.ErrOtherVolume. If the volume is ReadWriteOncePod
	// and published elsewhere, it wraps volumes.ErrInUse. A kubelet that tries again may leave
	// out the attachment.
	Publish(ctx context.Context, spec volumes.Spec, staging, target string) error
	// Unpublish unmounts a volume from a pod, and removes target. It succeeds if nothing is
	// there.
	Unpublish(ctx context.Context, handle, target string) error
	// Check returns why a volume that is staged, or published, at a path is abnormal, and nil if
	// it is healthy. Without a path, it checks the volume wherever it is on the node. If it isn't
	// there, the error wraps volumes.ErrNotFound. Check waits for no server, and callers may call
	// it while another method runs for the volume.
	Check(ctx context.Context, handle, path string) error
}

// Grower is a Driver whose volumes need a step on the node to grow.
type Grower interface {
	Driver
	// Grow makes a volume that is staged, or published, at a path as large as its storage is now,
	// and returns that size in bytes. If it isn't there, the error wraps volumes.ErrNotFound.
	Grow(ctx context.Context, handle, path string) (int64, error)
}

// Remote is a Driver whose volumes may be on servers that hang. Callers inspect, open and list
// nothing that is mounted of such a volume: so they apply no fsGroup to it. They let its calls hold
// up no call for another driver.
type Remote interface {
	Driver
	// IsRemote reports whether the driver's volumes are on servers.
	IsRemote() bool
}

// Inliner is a Driver that also serves inline volumes, which a pod's own spec defines. They
// aren't staged.
type Inliner interface {
	Driver
	// PublishInline creates a pod's own volume, and makes it visible at target. The spec has Pod
	// (name, namespace and UID only) and Volume, whose source is CSI, and no PersistentVolume nor
	// Backend.
	PublishInline(ctx context.Context, spec volumes.Spec, handle, target string) error
	// UnpublishInline unmounts the volume and deletes it. It succeeds if nothing is there.
	UnpublishInline(ctx context.Context, handle, target string) error
	// IsInline reports whether a handle is that of an inline volume.
	IsInline(handle string) bool
}

// Registered are the drivers of other projects that are registered on the node now. Their names are
// none of the agent's own drivers'.
type Registered interface {
	// Find returns a driver, or an error that says that none of the name is registered.
	Find(name string) (Foreign, error)
}

// Foreign is a driver of another project, behind a socket. It may hang, crash and lie. Its methods
// end after a time: the work of a call may go on then, and the call is repeated until the driver
// answers. Callers open nothing that is mounted of its volumes while they hold what other volumes
// need. Its Stage and Publish read what the call needs of the API server, and Unstage doesn't know
// which pods use a volume: callers unstage what no pod has.
type Foreign interface {
	Driver
	// PublishEphemeral makes the inline volume of a pod, and makes it visible at target. The spec
	// has no PersistentVolume. Unpublish ends it.
	PublishEphemeral(ctx context.Context, spec volumes.Spec, handle, target string) error
	// NeedsGroup reports whether the caller is to apply the pod's fsGroup to a published volume.
	NeedsGroup(ctx context.Context, spec volumes.Spec) (bool, error)
	// Expand makes a volume as large as its object says, and returns that size in bytes. The
	// error wraps volumes.ErrNotSupported if no repetition helps.
	Expand(ctx context.Context, spec volumes.Spec, staging, target string) (int64, error)
	// Usage returns how much of a volume that is published at target is used. The error wraps
	// volumes.ErrNotSupported if the driver measures nothing. Callers may call it while another
	// method runs for the volume.
	Usage(ctx context.Context, handle, target string) (volumes.Usage, error)
}
