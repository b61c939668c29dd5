package gce

import (
	"cmp"
	"context"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
)

// List returns the disks and snapshots that have this backend's labels and a description that agrees.
func (b *gceBackend) List(ctx context.Context) ([]backend.Held, error) {
	return inCloud(ctx, b, "listing disks", func(c *cloud.Client) ([]backend.Held, error) {
		held, err := b.list(ctx, c)
		if err != nil {
			return nil, err
		}
		kept, err := b.heldSnapshots(ctx, c)
		return append(held, kept...), err
	})
}

// list finds disks by label. Their descriptions prove the owner.
func (b *gceBackend) list(ctx context.Context, c *cloud.Client) ([]backend.Held, error) {
	found, err := b.ownDisks(ctx, c)
	var held []backend.Held
	for _, one := range found {
		read, _ := owner.OfDisk(one.Disk)
		held = append(held, backend.Held{ID: one.Name, Claim: read.Claim, Retained: one.Labels[labels.Retained] != ""})
	}
	slices.SortFunc(held, func(one, other backend.Held) int { return cmp.Compare(one.ID, other.ID) })
	// A volume that was begun in two zones is one volume.
	return slices.CompactFunc(held, func(one, other backend.Held) bool { return one.ID == other.ID }), err
}

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
	if found.Labels[labels.Retained] != "" {
		return place, nil
	}
	return place, c.SetLabel(ctx, found, labels.Retained, "true")
}
