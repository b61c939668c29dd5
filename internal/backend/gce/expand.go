package gce

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// Expand makes the volume's disk larger; its node grows the file system.
func (b *gceBackend) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	return inCloud(ctx, b, "growing volume "+request.ID, func(c *cloud.Client) (backend.Expansion, error) {
		return b.expand(ctx, c, request.ID, request.Capacity)
	})
}

// expand resizes a disk that is smaller, attached or not.
func (b *gceBackend) expand(ctx context.Context, c *cloud.Client, id string, capacity resource.Quantity) (backend.Expansion, error) {
	found, err := b.ownDisk(ctx, c, id)
	switch {
	case err != nil:
		return backend.Expansion{}, err
	case found == nil:
		return backend.Expansion{}, c.NoDisk(id)
	case found.Status == cloud.DiskDeleting:
		return backend.Expansion{}, backend.Conflict.Errorf("disk %s is being deleted: it doesn't grow", found.Path())
	case found.SizeGb >= cloud.InGib(capacity):
		return grown(found), nil
	}
	if err := c.Resize(ctx, found, capacity); err != nil {
		return backend.Expansion{}, err
	}
	now, err := c.Disk(ctx, found.ZoneName(), id)
	switch {
	case err != nil:
		return backend.Expansion{}, err
	case now == nil || now.Id != found.Id:
		return backend.Expansion{}, c.NoDisk(id)
	case now.SizeGb < cloud.InGib(capacity):
		return backend.Expansion{}, backend.InProgress.Errorf("waiting for disk %s to have %s", found.Path(), capacity.String())
	}
	return grown(now), nil
}

func grown(found *cloud.Disk) backend.Expansion {
	return backend.Expansion{Capacity: found.Capacity(), OnNode: true}
}
