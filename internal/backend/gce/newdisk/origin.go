package newdisk

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
)

// OriginOf returns what a request's disk is made from. A snapshot isn't read: an earlier call may have
// made the disk while it was there.
func (m Maker) OriginOf(ctx context.Context, c *cloud.Client, request backend.Request) (Origin, error) {
	source := request.Source
	switch {
	case source == nil:
		return Origin{}, nil
	case source.IsUnknown():
		// The insert can't be repeated: one that is under way ends first.
		if err := c.CheckNoInsert(ctx, request.ID, c.Places()...); err != nil {
			return Origin{}, err
		}
		return Origin{}, backend.Invalid.Errorf("it isn't known any more what the disk was to be a copy of, and no copy was begun: create the claim again")
	case source.Snapshot != "":
		_, isImage, err := m.Owner.SnapshotName(source.Snapshot, c.Project)
		if isImage {
			return Origin{Image: source.Snapshot}, err
		}
		return Origin{Snapshot: source.Snapshot}, err
	}
	found, err := m.Owner.FindDisk(ctx, c, source.ID)
	switch {
	case err != nil:
		return Origin{}, err
	case found == nil:
		return Origin{}, errNoOrigin("disk " + source.ID)
	case found.Status != cloud.DiskReady:
		return Origin{}, backend.InProgress.Errorf("disk %s, which is to be copied, is %s: waiting for it to be READY", found.Path(), found.Status)
	}
	if read, _ := owner.OfDisk(found.Disk); read.Claim != source.Claim {
		return Origin{}, backend.Conflict.Errorf("disk %s, which is to be copied, belongs to claim %s/%s, uid %s",
			found.Path(), read.Claim.Namespace, read.Claim.Name, read.Claim.UID)
	}
	return Origin{Disk: found}, owner.CheckAlone(found, "copied: restore the VolumeSnapshot that it was made from")
}

func errNoOrigin(what string) error {
	return backend.Invalid.Errorf("%s is gone, and no empty disk is made in place of its copy: create the claim again, with another source", what)
}

// CheckOrigin returns an error of kind Conflict where a disk of the request's name was made from
// something else. A request may not know any more what that was.
func CheckOrigin(found *cloud.Disk, source *backend.Source) error {
	switch {
	case source == nil || source.IsUnknown():
		return nil
	case source.Snapshot != "" && cloud.PathOf(found.SourceSnapshot) != source.Snapshot && cloud.PathOf(found.SourceImage) != source.Snapshot,
		source.ID != "" && cloud.NameOf(found.SourceDisk) != source.ID:
		return backend.Conflict.Errorf("disk %s was made from %.200q, not from what the claim names: it is not what was made for this claim",
			found.Path(), found.SourceSnapshot+found.SourceImage+found.SourceDisk)
	}
	return nil
}
