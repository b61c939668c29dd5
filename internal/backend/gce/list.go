package gce

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// List returns the disks that have this backend's labels and a description that agrees.
func (b *gceBackend) List(ctx context.Context) ([]backend.Held, error) {
	return inCloud(ctx, b, "listing disks", func(c *cloud.Client) ([]backend.Held, error) { return b.list(ctx, c) })
}

// list finds disks by label. Their descriptions prove the owner.
func (b *gceBackend) list(ctx context.Context, c *cloud.Client) ([]backend.Held, error) {
	found, err := b.ownDisks(ctx, c)
	var held []backend.Held
	for _, one := range found {
		read, _ := recordOf(one.Disk)
		held = append(held, backend.Held{ID: one.Name, Claim: read.Claim, Retained: one.Labels[retainedLabel] != ""})
	}
	slices.SortFunc(held, func(one, other backend.Held) int { return cmp.Compare(one.ID, other.ID) })
	// A volume that was begun in two zones is one volume.
	return slices.CompactFunc(held, func(one, other backend.Held) bool { return one.ID == other.ID }), err
}

// ownDisks lists the disks that are this backend's.
func (b *gceBackend) ownDisks(ctx context.Context, c *cloud.Client) ([]*cloud.Disk, error) {
	filter := fmt.Sprintf("(labels.%s = %q) AND (labels.%s = %q)", clusterLabel, labelValue(b.cluster), backendLabel, labelValue(b.name))
	found, err := c.Disks(ctx, filter)
	return slices.DeleteFunc(found, func(one *cloud.Disk) bool {
		_, foreign := b.checkOwner(one)
		return foreign != nil
	}), err
}
