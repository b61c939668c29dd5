package gce

import (
	"context"
	"regexp"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/diskclass"
	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
	"github.com/stowage-dev/stowage/internal/backend/gce/size"
	"github.com/stowage-dev/stowage/internal/backend/gce/snapshotclass"
)

// validSnapshotID is what backend.SnapshotID makes, as far as it is a name of a snapshot.
var validSnapshotID = regexp.MustCompile(`^snapshot-[a-z0-9-]{0,53}[a-z0-9]$`)

// CreateSnapshot finds the snapshot, or makes it.
func (b *gceBackend) CreateSnapshot(ctx context.Context, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	return inCloud(ctx, b, "making snapshot "+request.ID, func(c *cloud.Client) (*backend.Snapshot, error) {
		return b.createSnapshot(ctx, c, request)
	})
}

func (b *gceBackend) createSnapshot(ctx context.Context, c *cloud.Client, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	if !validSnapshotID.MatchString(request.ID) {
		return nil, backend.Invalid.Errorf("%q is no name that a snapshot can have in the cloud", request.ID)
	}
	// Before the class, which may have changed: what an earlier call made isn't forgotten.
	found, err := b.findBegun(ctx, c, request)
	if err == nil && found == nil {
		found, err = b.insertSnapshot(ctx, c, request)
	}
	if err != nil {
		return nil, err
	}
	return b.resumeSnapshot(ctx, c, found, request)
}

// findBegun reads what an earlier call made, a snapshot or an image: nil where there is none.
func (b *gceBackend) findBegun(ctx context.Context, c *cloud.Client, request backend.SnapshotRequest) (*cloud.Snapshot, error) {
	if request.Handle != "" {
		return b.owner.FindSnapshot(ctx, c, request.Handle)
	}
	found, err := c.Snapshot(ctx, request.ID, false)
	if found != nil || err != nil {
		return found, err
	}
	return c.Snapshot(ctx, request.ID, true)
}

// newSnapshot is the snapshot of a request.
func (b *gceBackend) newSnapshot(request backend.SnapshotRequest) (*cloud.Snapshot, error) {
	wanted, err := snapshotclass.SnapshotOf(request.Parameters)
	if err != nil {
		return nil, err
	}
	if request.Handle != "" {
		// The class may have changed since: what is deleted later has this handle.
		if _, wanted.IsImage, err = b.owner.SnapshotName(request.Handle, b.spec.Project); err != nil {
			return nil, err
		}
	}
	wanted.Name, wanted.Labels = request.ID, b.owner.Label(b.spec.Disks.Labels, wanted.Labels)
	wanted.Description, err = b.owner.DescribeSnapshot(request)
	return wanted, err
}

// insertSnapshot makes the snapshot. A second call, also of another process, takes part in the first.
func (b *gceBackend) insertSnapshot(ctx context.Context, c *cloud.Client, request backend.SnapshotRequest) (*cloud.Snapshot, error) {
	wanted, err := b.newSnapshot(request)
	if err != nil {
		return nil, err
	}
	of, err := b.diskToKeep(ctx, c, request.Volume)
	if err != nil {
		return nil, err
	}
	wanted.Key = diskclass.KeyOf(of.Disk)
	err = c.InsertSnapshot(ctx, of, wanted)
	switch why := reason.Of(err); why {
	case reason.InUse, reason.KeyUnusable:
		if request.Unwanted {
			return nil, endUndo(ctx, c, wanted, err)
		}
		if why == reason.InUse {
			err = whyNoImage(of, err)
		}
		return nil, err
	case reason.Exists, reason.NotFound:
		return nil, backend.InProgress.Errorf("snapshot %s exists by now, or disk %s is gone: both are read again: %w", request.ID, of.Path(), err)
	}
	if err != nil {
		return nil, err
	}
	made, err := c.Snapshot(ctx, request.ID, wanted.IsImage)
	if err == nil && made == nil {
		err = backend.Invalid.Errorf("snapshot %s was made and was deleted since, not by Stowage: create the VolumeSnapshot again", request.ID)
	}
	return made, err
}

// whyNoImage explains that no image is made of a disk in use.
func whyNoImage(of *cloud.Disk, refusal error) error {
	return backend.Unavailable.Errorf("disk %s is attached to an instance, and an image is made of a disk that isn't: it is tried again; "+
		"end the pods that have the volume, or use a VolumeSnapshotClass that makes snapshots: %w", of.Path(), refusal)
}

// endUndo ends the wait for a snapshot that isn't wanted any more: the refusal proves that no earlier call with this request
// goes on.
func endUndo(ctx context.Context, c *cloud.Client, wanted *cloud.Snapshot, refusal error) error {
	path := c.SnapshotPath(wanted)
	switch found, err := c.Snapshot(ctx, wanted.Name, wanted.IsImage); {
	case err != nil:
		return err
	case found != nil:
		return backend.InProgress.Errorf("snapshot %s exists by now: it is read again", path)
	}
	return backend.NotFound.Errorf("snapshot %s was never made: %w", path, refusal)
}

// diskToKeep finds the disk of a volume: one of this backend, or one that it may attach.
func (b *gceBackend) diskToKeep(ctx context.Context, c *cloud.Client, volume string) (*cloud.Disk, error) {
	if existingID.MatchString(volume) && b.spec.Existing {
		ref, err := b.diskRefOf(volume)
		if err != nil {
			return nil, err
		}
		return b.existingDisk(ctx, c, ref)
	}
	found, err := b.owner.FindDisk(ctx, c, volume)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, c.NoDisk(volume)
	case found.Status != cloud.DiskReady:
		return nil, backend.InProgress.Errorf("disk %s is %s: waiting for it to be READY", found.Path(), found.Status)
	}
	return found, nil
}

// resumeSnapshot returns what there is of a snapshot that was begun for a request.
func (b *gceBackend) resumeSnapshot(ctx context.Context, c *cloud.Client, found *cloud.Snapshot, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	path := c.SnapshotPath(found)
	read, err := b.owner.CheckSnapshot(found, path)
	switch {
	case err != nil:
		return nil, err
	case read.Snapshot != request.Owner || read.Volume != request.Volume:
		return nil, backend.Conflict.Errorf("snapshot %s is that of volume %.200q, for the VolumeSnapshot with uid %.200q", path, read.Volume, read.Snapshot)
	case found.Status == cloud.SnapshotDeleting:
		return nil, backend.Conflict.Errorf("snapshot %s is being deleted: it isn't made again", path)
	case found.Status == cloud.SnapshotFailed:
		if err := c.DeleteSnapshot(ctx, found); err != nil {
			return nil, err
		}
		return nil, backend.InProgress.Errorf("making snapshot %s failed: what there was of it is removed, and it is made again", path)
	}
	return describedSnapshot(found, path)
}

// describedSnapshot is what the cloud says of a snapshot.
func describedSnapshot(found *cloud.Snapshot, path string) (*backend.Snapshot, error) {
	created, err := time.Parse(time.RFC3339, found.CreationTimestamp)
	if err != nil {
		return nil, backend.Unavailable.Errorf("snapshot %s was made at %.100q, which is no time", path, found.CreationTimestamp)
	}
	return &backend.Snapshot{
		Handle: path, Created: created, Ready: found.Status == cloud.SnapshotReady,
		RestoreSize: size.Of(found.DiskSizeGb),
	}, nil
}

// DeleteSnapshot removes a snapshot that this backend made.
func (b *gceBackend) DeleteSnapshot(ctx context.Context, handle string) error {
	_, err := inCloud(ctx, b, "deleting snapshot "+handle, func(c *cloud.Client) (any, error) {
		found, err := b.owner.FindSnapshot(ctx, c, handle)
		if found == nil || err != nil {
			return nil, err
		}
		if _, err := b.owner.CheckSnapshot(found, handle); err != nil {
			return nil, err
		}
		return nil, c.DeleteSnapshot(ctx, found)
	})
	return err
}

// FindSnapshot returns a snapshot of the project: another program may have made it.
func (b *gceBackend) FindSnapshot(ctx context.Context, handle string) (*backend.Snapshot, error) {
	return inCloud(ctx, b, "finding snapshot "+handle, func(c *cloud.Client) (*backend.Snapshot, error) {
		found, err := b.owner.FindSnapshot(ctx, c, handle)
		switch {
		case err != nil:
			return nil, err
		case found == nil:
			return nil, backend.NotFound.Errorf("there is no snapshot %s", handle)
		}
		described, err := describedSnapshot(found, handle)
		if err == nil {
			if read, foreign := b.owner.CheckSnapshot(found, handle); foreign == nil {
				described.Made, described.Volume = true, read.Volume
			}
		}
		return described, err
	})
}

// RetainSnapshot labels a snapshot, unless it is too late.
func (b *gceBackend) RetainSnapshot(ctx context.Context, handle string) error {
	_, err := inCloud(ctx, b, "retaining snapshot "+handle, func(c *cloud.Client) (any, error) {
		found, err := b.owner.FindSnapshot(ctx, c, handle)
		if err == nil && (found == nil || found.Status == cloud.SnapshotDeleting) {
			err = backend.NotFound.Errorf("there is no snapshot %s, or it is being deleted", handle)
		}
		if err == nil {
			_, err = b.owner.CheckSnapshot(found, handle)
		}
		if err != nil || found.Labels[labels.Retained] != "" {
			return nil, err
		}
		return nil, c.SetSnapshotLabel(ctx, found, labels.Retained, "true")
	})
	return err
}

// heldSnapshots lists the snapshots and images that are this backend's.
func (b *gceBackend) heldSnapshots(ctx context.Context, c *cloud.Client) (held []backend.Held, err error) {
	found, err := c.Snapshots(ctx, b.owner.Filter())
	for _, one := range found {
		path := c.SnapshotPath(one)
		if read, foreign := b.owner.CheckSnapshot(one, path); foreign == nil {
			held = append(held, backend.Held{ID: path, Snapshot: read.Snapshot, Retained: one.Labels[labels.Retained] != ""})
		}
	}
	return held, err
}
