package gce

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// restoredFrom returns the path of the snapshot that a request's disk is made from; "" for an empty disk.
func (b *gceBackend) restoredFrom(ctx context.Context, c *cloud.Client, zone string, request backend.Request) (string, error) {
	switch {
	case request.Source == nil:
		return "", nil
	case request.Source.Snapshot == "":
		// An insert can't be repeated without it: one that is under way ends first.
		if err := c.CheckNoInsert(ctx, request.ID, zone); err != nil {
			return "", err
		}
		return "", backend.Invalid.Errorf("it isn't known any more what the claim is restored from: create the claim again")
	}
	_, err := b.snapshotName(request.Source.Snapshot)
	return request.Source.Snapshot, err
}

// whyNotRestored explains why the cloud refused to make a disk from a snapshot. It is asked after the
// call: an earlier one may have made the disk while the snapshot was there.
func (b *gceBackend) whyNotRestored(ctx context.Context, c *cloud.Client, request backend.Request, refusal error) error {
	found, err := b.snapshotOfHandle(ctx, c, request.Source.Snapshot)
	switch {
	case err != nil:
		return err
	case found == nil:
		return backend.Invalid.Errorf("snapshot %s is gone, and no empty disk is made in its place: create the claim from another VolumeSnapshot", request.Source.Snapshot)
	case found.DiskSizeGb > cloud.InGib(request.Capacity):
		return backend.Invalid.Errorf("snapshot %s is of a disk with %dGi: ask for at least as much", request.Source.Snapshot, found.DiskSizeGb)
	}
	return refusal
}
