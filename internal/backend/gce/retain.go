package gce

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// Retain labels the volume's disk.
func (b *gceBackend) Retain(ctx context.Context, id string) (place string, err error) {
	return inCloud(ctx, b, "retaining volume "+id, func(c *cloud.Client) (string, error) { return b.retain(ctx, c, id) })
}

// retain labels the disk, unless it is too late.
func (b *gceBackend) retain(ctx context.Context, c *cloud.Client, id string) (place string, err error) {
	found, err := b.ownDisk(ctx, c, id)
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "", c.NoDisk(id)
	case found.Status == cloud.DiskDeleting:
		return "", backend.NotFound.Errorf("it is too late to keep disk %s: it is being deleted", found.Path())
	}
	place = "disk " + found.Path()
	if found.Labels[retainedLabel] != "" {
		return place, nil
	}
	return place, c.SetLabel(ctx, found, retainedLabel, "true")
}
