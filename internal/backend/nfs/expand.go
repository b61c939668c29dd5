package nfs

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

var _ backend.Expander = (*nfsBackend)(nil)

// Expand changes nothing on the share: a directory has no size of its own, and its
// capacity is a label. It is refused where the whole share is smaller.
func (b *nfsBackend) Expand(ctx context.Context, id string, capacity resource.Quantity) (backend.Expansion, error) {
	_, err := share.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (any, error) {
		return nil, b.checkGrowth(ctx, root, id, capacity)
	})
	if err != nil {
		return backend.Expansion{}, b.translate(fmt.Sprintf("growing volume %s", id), err)
	}
	return backend.Expansion{Capacity: capacity, Advisory: true}, nil
}

func (b *nfsBackend) checkGrowth(ctx context.Context, root tree.Dir, id string, capacity resource.Quantity) error {
	if !validID.MatchString(id) {
		return backend.Conflict.Errorf("%q is no id of a volume: nothing grows for it", id)
	}
	found, err := findRecord(ctx, root, id)
	switch {
	case err != nil:
		return err
	case found == nil:
		return backend.NotFound.Errorf("share %s of server %s has no record of volume %s", b.spec.path, b.spec.server, id)
	case found.Deletion != "":
		return backend.Conflict.Errorf("volume %s is being deleted: it doesn't grow", id)
	}
	if err := b.checkOwner(found); err != nil {
		return err
	}
	return b.checkRoom(ctx, root, capacity)
}
