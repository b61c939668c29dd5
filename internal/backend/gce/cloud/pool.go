package cloud

import (
	"context"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
)

// StoragePool reads a pool, which may be another project's: nil where there is none.
func (c *Client) StoragePool(ctx context.Context, project, zone, name string) (*compute.StoragePool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	found, err := c.compute.StoragePools.Get(project, zone, name).Context(ctx).Do()
	if reason.Of(err) == reason.NotFound {
		return nil, nil
	}
	return found, err
}
