package nfs

import (
	"context"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/snapshots"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

var (
	_ backend.Snapshotter      = (*nfsBackend)(nil)
	_ backend.SnapshotRetainer = (*nfsBackend)(nil)
)

// copySlice is how long one call copies. The next call continues.
const copySlice = 40 * time.Second

// CreateSnapshot copies the directory of a volume.
func (b *nfsBackend) CreateSnapshot(ctx context.Context, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	return onShare(ctx, b, "making snapshot "+request.ID, func(ctx context.Context, root tree.Dir) (*backend.Snapshot, error) {
		return b.snapshots.Create(ctx, root, request, func() (snapshots.Volume, error) { return b.volumeToCopy(ctx, root, request.Volume) })
	})
}

// volumeToCopy finds a volume that isn't being deleted, and whose directory is reserved for it.
func (b *nfsBackend) volumeToCopy(ctx context.Context, root tree.Dir, id string) (snapshots.Volume, error) {
	found, err := b.ownRecord(ctx, root, id)
	switch {
	case err != nil:
		return snapshots.Volume{}, err
	case found == nil || found.Deletion != "":
		return snapshots.Volume{}, backend.NotFound.Errorf("there is no volume %s, of which a snapshot is to be made", id)
	}
	reserved, err := isReserved(ctx, root, *found)
	if err == nil && !reserved {
		err = backend.Conflict.Errorf("directory %s isn't reserved for volume %s: it isn't copied", tree.Printable(found.Directory), id)
	}
	return snapshots.Volume{Directory: found.Directory, Claim: snapshots.Claim(found.Claim)}, err
}

// DeleteSnapshot removes a snapshot.
func (b *nfsBackend) DeleteSnapshot(ctx context.Context, handle string) error {
	_, err := onShare(ctx, b, "deleting snapshot "+handle, func(ctx context.Context, root tree.Dir) (any, error) {
		return nil, b.snapshots.Delete(ctx, root, handle)
	})
	return err
}

// FindSnapshot finds a snapshot.
func (b *nfsBackend) FindSnapshot(ctx context.Context, handle string) (*backend.Snapshot, error) {
	return onShare(ctx, b, "finding snapshot "+handle, func(ctx context.Context, root tree.Dir) (*backend.Snapshot, error) {
		return b.snapshots.Find(ctx, root, handle)
	})
}

// RetainSnapshot marks the record of a snapshot as retained.
func (b *nfsBackend) RetainSnapshot(ctx context.Context, handle string) error {
	_, err := onShare(ctx, b, "retaining snapshot "+handle, func(ctx context.Context, root tree.Dir) (any, error) {
		return nil, b.snapshots.Retain(ctx, root, handle)
	})
	return err
}
