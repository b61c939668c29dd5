package nfs

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

var _ backend.Expander = (*nfsBackend)(nil)

// Expand changes nothing on the share: a directory has no size of its own, and its capacity is a
// label. It fails where the whole share is smaller.
func (b *nfsBackend) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	return onShare(ctx, b, "growing volume "+request.ID, func(ctx context.Context, root tree.Dir) (backend.Expansion, error) {
		if err := b.checkGrowth(ctx, root, request.ID, request.Capacity); err != nil {
			return backend.Expansion{}, err
		}
		return backend.Expansion{Capacity: request.Capacity, Advisory: true}, nil
	})
}

func (b *nfsBackend) checkGrowth(ctx context.Context, root tree.Dir, id string, capacity resource.Quantity) error {
	found, err := b.ownRecord(ctx, root, id)
	switch {
	case err != nil:
		return err
	case found == nil:
		return backend.NotFound.Errorf("share %s of server %s has no record of volume %s", b.spec.path, b.spec.server, id)
	case found.Deletion != "":
		return backend.Conflict.Errorf("volume %s is being deleted: it doesn't grow", id)
	}
	return b.checkRoom(ctx, root, capacity)
}
