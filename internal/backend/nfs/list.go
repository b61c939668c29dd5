package nfs

import (
	"context"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/listing"
	"github.com/stowage-dev/stowage/internal/backend/nfs/snapshots"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// List returns the volumes and snapshots that are recorded as this backend's.
func (b *nfsBackend) List(ctx context.Context) (held []backend.Held, err error) {
	for after := ""; ; {
		page, next, err := b.ListAfter(ctx, after)
		if held = append(held, page...); err != nil || next == "" {
			return held, err
		}
		after = next
	}
}

// ListAfter reads records until the time slice ends, at least one.
func (b *nfsBackend) ListAfter(ctx context.Context, id string) (page []backend.Held, next string, err error) {
	read, err := onShare(ctx, b, "listing volumes", func(ctx context.Context, root tree.Dir) (listing.Page, error) {
		return b.listAfter(ctx, root, id, time.Now().Add(b.share.Slice))
	})
	return read.Held, read.Next, err
}

// listAfter reads the records of volumes after an id, and then those of snapshots, whose ids are later.
func (b *nfsBackend) listAfter(ctx context.Context, root tree.Dir, after string, until time.Time) (page listing.Page, err error) {
	kinds := []listing.Records{
		{Folder: volumes, IsID: validID.MatchString, Read: b.heldVolume},
		{Folder: snapshots.Folder, IsID: backend.IsSnapshotID, Read: b.snapshots.Held},
	}
	if backend.IsSnapshotID(after) {
		kinds = kinds[1:]
	}
	for _, records := range kinds {
		if err := records.AddAfter(ctx, root, after, until, &page); err != nil || page.Next != "" {
			return page, err
		}
	}
	return page, nil
}

// heldVolume returns what a volume's record says: nil for one that isn't this backend's.
func (b *nfsBackend) heldVolume(ctx context.Context, dir tree.Dir, id string) (*backend.Held, error) {
	found, err := readRecord(ctx, dir, id)
	if err != nil || b.checkOwner(found) != nil {
		return nil, err
	}
	return &backend.Held{ID: id, Claim: found.Claim, Retained: found.Retained}, nil
}
