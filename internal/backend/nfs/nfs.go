// Package nfs is the backend with storage on a share of an NFS server.
//
// A volume is a directory of the share. Beside the volumes is a directory of Stowage's, which no
// pod mounts, with each volume's owner record. Only what a record of this cluster names is
// removed. The manager works through the user-space client in nfs3 or, where the share is mounted
// in its pod, through the mount. It never mounts anything itself.
package nfs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/snapshots"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

type nfsBackend struct {
	name    string
	cluster string
	spec    settings
	share   *share.Share
	// snapshots are those of the backend, and what is restored from them.
	snapshots snapshots.Keeper
}

var (
	_ backend.Prober           = (*nfsBackend)(nil)
	_ backend.PageLister       = (*nfsBackend)(nil)
	_ backend.CapacityReporter = (*nfsBackend)(nil)
)

// Capabilities are those of a directory: it has no size of its own. Any client can mount it;
// schedulers and nodes restrict it to one pod where a claim asks for that.
func (b *nfsBackend) Capabilities() backend.Capabilities {
	return backend.Capabilities{
		AccessModes: []corev1.PersistentVolumeAccessMode{
			corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadOnlyMany, corev1.ReadWriteMany,
		},
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem},
		Advisory:    true,
		Clones:      true,
		Restores:    true,
	}
}

// Space is what the server reports about the share.
func (b *nfsBackend) Space(ctx context.Context) (backend.Space, error) {
	space, err := onShare(ctx, b, "asking for the share's space", func(ctx context.Context, root tree.Dir) (tree.Space, error) { return root.Space(ctx) })
	if err != nil {
		return backend.Space{}, err
	}
	return backend.Space{Total: bytes(space.Total), Used: bytes(space.Total - min(space.Free, space.Total))}, nil
}

// bytes makes a quantity of a number that may be too large for one.
func bytes(count uint64) resource.Quantity {
	const most = 1<<63 - 1
	return *resource.NewQuantity(int64(min(count, most)), resource.BinarySI)
}

// onShare does some work on the share, and gives its errors their kinds.
func onShare[T any](ctx context.Context, b *nfsBackend, doing string, work func(ctx context.Context, root tree.Dir) (T, error)) (T, error) {
	result, err := share.Use(ctx, b.share, work)
	return result, share.Translate(b.spec.server, b.spec.path, doing, err)
}
