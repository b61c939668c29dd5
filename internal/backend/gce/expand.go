package gce

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// expand asks for a larger disk where it is smaller. It grows while it is attached, too.
func (b *gceBackend) expand(ctx context.Context, c *cloud, id string, capacity resource.Quantity) (backend.Expansion, error) {
	found, err := b.ownDisk(ctx, c, id)
	switch {
	case err != nil:
		return backend.Expansion{}, err
	case found == nil:
		return backend.Expansion{}, c.notThere(id)
	case found.Status == diskDeleting:
		return backend.Expansion{}, backend.Conflict.Errorf("disk %s is being deleted: it doesn't grow", found.path())
	case found.SizeGb >= inGib(capacity):
		return grown(found), nil
	}
	if err := c.resize(ctx, found, capacity); err != nil {
		return backend.Expansion{}, err
	}
	now, err := c.disk(ctx, found.zone(), id)
	switch {
	case err != nil:
		return backend.Expansion{}, err
	case now == nil || now.Id != found.Id:
		return backend.Expansion{}, c.notThere(id)
	case now.SizeGb < inGib(capacity):
		return backend.Expansion{}, backend.InProgress.Errorf("waiting for disk %s to have %s", found.path(), capacity.String())
	}
	return grown(now), nil
}
