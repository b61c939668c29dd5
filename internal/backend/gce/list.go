package gce

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

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

// list finds disks by label. Their descriptions prove the owner. A volume with disks in several zones is one volume, which is
// kept if one of them is.
func (b *gceBackend) list(ctx context.Context, c *cloud.Client) ([]backend.Held, error) {
	found, err := b.owner.ListDisks(ctx, c)
	held := map[string]backend.Held{}
	for _, one := range found {
		read, _ := owner.OfDisk(one.Disk)
		held[one.Name] = backend.Held{ID: one.Name, Claim: read.Claim, Retained: one.Labels[labels.Retained] != "" || held[one.Name].Retained}
	}
	return slices.SortedFunc(maps.Values(held), func(one, other backend.Held) int { return cmp.Compare(one.ID, other.ID) }), err
}

// Retain labels the volume's disk.
func (b *gceBackend) Retain(ctx context.Context, id string) (place string, err error) {
	return inCloud(ctx, b, "retaining volume "+id, func(c *cloud.Client) (string, error) { return b.retain(ctx, c, id) })
}

// retain labels the volume's disk, or what is left of its disks, unless it is too late.
func (b *gceBackend) retain(ctx context.Context, c *cloud.Client, id string) (place string, err error) {
	found, err := b.owner.FindAllDisks(ctx, c, id)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", c.NoDisk(id)
	}
	staying := slices.DeleteFunc(slices.Clone(found), isGoing)
	if len(staying) == 0 {
		return "", backend.NotFound.Errorf("it is too late to keep disk %s: it is being deleted", found[0].Path())
	}
	var paths []string
	for _, one := range staying {
		paths = append(paths, one.Path())
		if one.Labels[labels.Retained] == "" {
			if err := c.SetLabel(ctx, one, labels.Retained, "true"); err != nil {
				return "", err
			}
		}
	}
	return "disk " + strings.Join(paths, ", "), nil
}

// isGoing reports whether a disk is being deleted. Others of its volume can be kept all the same.
func isGoing(one *cloud.Disk) bool { return one.Status == cloud.DiskDeleting }
