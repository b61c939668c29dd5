// Package nfs is the backend whose storage is a share of an NFS server.
//
// A volume is a directory of the share. Beside the volumes lies a directory of
// ours, which no pod mounts, with a record of whose each one is. Nothing is
// removed that no record of this cluster names. The manager does its work over
// the user-space client in nfs3 or, where the share is mounted in its pod, over
// the mount; it never mounts anything itself.
package nfs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	nfsshare "github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

type nfsBackend struct {
	name    string
	cluster string
	spec    settings
	share   *nfsshare.Share
}

var (
	_ backend.Prober           = (*nfsBackend)(nil)
	_ backend.PageLister       = (*nfsBackend)(nil)
	_ backend.CapacityReporter = (*nfsBackend)(nil)
)

// Capabilities are those of a directory: it has no size of its own. The server gives it
// to everybody; schedulers and nodes keep it to one pod where that is asked for.
func (b *nfsBackend) Capabilities() backend.Capabilities {
	return backend.Capabilities{
		AccessModes: []corev1.PersistentVolumeAccessMode{
			corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadOnlyMany, corev1.ReadWriteMany,
		},
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem},
		Advisory:    true,
	}
}

// Space is what the server says of the share.
func (b *nfsBackend) Space(ctx context.Context) (backend.Space, error) {
	space, err := nfsshare.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (tree.Space, error) { return root.Space(ctx) })
	if err != nil {
		return backend.Space{}, b.translate("asking for the share's space", err)
	}
	return backend.Space{Total: bytes(space.Total), Used: bytes(space.Total - min(space.Free, space.Total))}, nil
}

// bytes makes a quantity of a number that may be too large for one.
func bytes(count uint64) resource.Quantity {
	const most = 1<<63 - 1
	return *resource.NewQuantity(int64(min(count, most)), resource.BinarySI)
}

func (b *nfsBackend) translate(doing string, err error) error {
	return nfsshare.Translate(b.spec.server, b.spec.path, doing, err)
}
