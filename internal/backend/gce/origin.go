package gce

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
)

// origin is what a new disk begins as a copy of. Its zero value is nothing.
type origin struct {
	// snapshot is the path of a snapshot.
	snapshot string
	// disk is a disk, of which a copy has a zone and the type.
	disk *cloud.Disk
}

// originOf returns what a request's disk is made from. A snapshot isn't read: an earlier call may have
// made the disk while it was there.
func (b *gceBackend) originOf(ctx context.Context, c *cloud.Client, request backend.Request) (origin, error) {
	source := request.Source
	switch {
	case source == nil:
		return origin{}, nil
	case source.IsUnknown():
		// The insert can't be repeated: one that is under way ends first.
		if err := c.CheckNoInsert(ctx, request.ID, c.Places()...); err != nil {
			return origin{}, err
		}
		return origin{}, backend.Invalid.Errorf("it isn't known any more what the disk was to be a copy of, and no copy was begun: create the claim again")
	case source.Snapshot != "":
		_, err := b.snapshotName(source.Snapshot)
		return origin{snapshot: source.Snapshot}, err
	}
	found, err := b.ownDisk(ctx, c, source.ID)
	switch {
	case err != nil:
		return origin{}, err
	case found == nil:
		return origin{}, errNoOrigin("disk " + source.ID)
	case found.Status != cloud.DiskReady:
		return origin{}, backend.InProgress.Errorf("disk %s, which is to be copied, is %s: waiting for it to be READY", found.Path(), found.Status)
	}
	if read, _ := owner.OfDisk(found.Disk); read.Claim != source.Claim {
		return origin{}, backend.Conflict.Errorf("disk %s, which is to be copied, belongs to claim %s/%s, uid %s",
			found.Path(), read.Claim.Namespace, read.Claim.Name, read.Claim.UID)
	}
	return origin{disk: found}, nil
}

func errNoOrigin(what string) error {
	return backend.Invalid.Errorf("%s is gone, and no empty disk is made in place of its copy: create the claim again, with another source", what)
}

// checkOrigin returns an error of kind Conflict where a disk of the request's name was made from
// something else. A request may not know any more what that was.
func checkOrigin(found *cloud.Disk, source *backend.Source) error {
	switch {
	case source == nil || source.IsUnknown():
		return nil
	case source.Snapshot != "" && cloud.PathOf(found.SourceSnapshot) != source.Snapshot,
		source.ID != "" && cloud.NameOf(found.SourceDisk) != source.ID:
		return backend.Conflict.Errorf("disk %s was made from %.200q, not from what the claim names: it is not what was made for this claim",
			found.Path(), found.SourceSnapshot+found.SourceDisk)
	}
	return nil
}
