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
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
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

// Provision records whose the volume is, reserves its directory, and makes it.
// Each step finds what an earlier attempt did.
func (b *nfsBackend) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	made, err := nfsshare.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (*backend.Volume, error) {
		return b.provision(ctx, root, request)
	})
	return made, b.translate(fmt.Sprintf("provisioning volume %s", request.ID), err)
}

// Delete removes, archives or lets go of the directory, as the spec says.
func (b *nfsBackend) Delete(ctx context.Context, id string) error {
	_, err := nfsshare.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (any, error) {
		return nil, b.delete(ctx, root, id)
	})
	return b.translate(fmt.Sprintf("deleting volume %s", id), err)
}

// Probe does, on the share, what a volume needs.
func (b *nfsBackend) Probe(ctx context.Context) error {
	_, err := nfsshare.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (any, error) {
		return nil, b.probe(ctx, root)
	})
	err = b.translate("trying the share", err)
	if err != nil && backend.KindOf(err) == "" {
		// Whatever became of the trial, no volume can be made now.
		return backend.Unavailable.Errorf("%w", err)
	}
	return err
}

// List tells of the volumes that are recorded as this backend's.
func (b *nfsBackend) List(ctx context.Context) (held []backend.Held, err error) {
	for after := ""; ; {
		page, next, err := b.ListAfter(ctx, after)
		if held = append(held, page...); err != nil || next == "" {
			return held, err
		}
		after = next
	}
}

// ListAfter reads records for as long as a slice lasts, at least one.
func (b *nfsBackend) ListAfter(ctx context.Context, id string) (page []backend.Held, next string, err error) {
	read, err := nfsshare.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (listed, error) {
		return b.listAfter(ctx, root, id, time.Now().Add(b.share.Slice))
	})
	return read.held, read.next, b.translate("listing volumes", err)
}

// Space is what the server says of the share.
func (b *nfsBackend) Space(ctx context.Context) (backend.Space, error) {
	space, err := nfsshare.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (tree.Space, error) { return root.Space(ctx) })
	if err != nil {
		return backend.Space{}, b.translate("asking for the share's space", err)
	}
	return backend.Space{Total: bytes(space.Total), Used: bytes(space.Total - min(space.Free, space.Total))}, nil
}

func (b *nfsBackend) volume(recorded record, request backend.Request) *backend.Volume {
	return &backend.Volume{
		Handle: recorded.ID,
		Attributes: map[string]string{
			stowagev1alpha1.ServerAttribute:       b.spec.server,
			stowagev1alpha1.PathAttribute:         b.spec.path + "/" + recorded.Directory,
			stowagev1alpha1.MountOptionsAttribute: b.spec.nodeOptions(),
		},
		Capacity: request.Capacity,
	}
}

// bytes makes a quantity of a number that may be too large for one.
func bytes(count uint64) resource.Quantity {
	const most = 1<<63 - 1
	return *resource.NewQuantity(int64(min(count, most)), resource.BinarySI)
}

func (b *nfsBackend) translate(doing string, err error) error {
	return nfsshare.Translate(b.spec.server, b.spec.path, doing, err)
}
