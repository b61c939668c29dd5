package gce

import (
	"context"
	"fmt"

	"google.golang.org/api/compute/v1"
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

func grown(found *disk) backend.Expansion {
	return backend.Expansion{Capacity: found.capacity(), OnNode: true}
}

func (c *cloud) resize(ctx context.Context, found *disk, capacity resource.Quantity) error {
	can, err := c.sizesOf(ctx, found.zone(), nameOf(found.Type))
	if err != nil {
		return err
	}
	sizeGb, err := can.atLeast(capacity)
	if err != nil {
		return err
	}
	return c.make(ctx, change{
		doing: fmt.Sprintf("growing disk %s to %dGi", found.path(), sizeGb),
		zone:  found.zone(),
		basis: []string{"resize", found.path(), found.incarnation(), fmt.Sprint(found.SizeGb), fmt.Sprint(sizeGb)},
		ask: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			asked := &compute.DisksResizeRequest{SizeGb: sizeGb}
			return c.compute.Disks.Resize(c.project, found.zone(), found.Name, asked).RequestId(requestID).Context(ctx).Do()
		},
	})
}
