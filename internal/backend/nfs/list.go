package nfs

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	nfsshare "github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// maxPage is how many records one call reads.
	maxPage = 5000
	// listings is how often the directory of records is listed, where a server can't go
	// on because volumes come and go.
	listings = 5
)

// listed is a page of what is recorded, and where the next one begins: "" for nowhere.
type listed struct {
	held []backend.Held
	next string
}

// List tells of the volumes that are recorded as this backend's.
func (b *nfsBackend) List(ctx context.Context) (held []backend.Held, err error) {
	for after := ""; ; {
		page, next, err := b.ListAfter(ctx, after)
		if held = append(held, page...); err != nil || next == "" {
			return held, err
		}
		after = next
	}
}

// ListAfter reads records for as long as a slice lasts, at least one.
func (b *nfsBackend) ListAfter(ctx context.Context, id string) (page []backend.Held, next string, err error) {
	read, err := nfsshare.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (listed, error) {
		return b.listAfter(ctx, root, id, time.Now().Add(b.share.Slice))
	})
	return read.held, read.next, b.translate("listing volumes", err)
}

// listAfter reads the records that come after an id, and keeps this backend's. Each page
// lists all names: what comes and goes between two pages moves none from one to the other.
func (b *nfsBackend) listAfter(ctx context.Context, root tree.Dir, after string, until time.Time) (page listed, err error) {
	err = tree.Within(ctx, root, volumes, func(dir tree.Dir) error {
		ids, more, err := idsAfter(ctx, dir, after)
		if err != nil {
			return err
		}
		for i, id := range ids {
			if err := b.addTo(ctx, dir, id, &page); err != nil {
				return err
			}
			if more = more || i+1 < len(ids); more && (time.Now().After(until) || i+1 == len(ids)) {
				page.next = id
				return nil
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return listed{}, nil
	}
	return page, err
}

// addTo reads a record. One that can't be read is nobody's, as Delete says of it; another
// was removed meanwhile.
func (b *nfsBackend) addTo(ctx context.Context, dir tree.Dir, id string, page *listed) error {
	found, err := readRecord(ctx, dir, id)
	switch {
	case errors.Is(err, backend.Conflict) || errors.Is(err, fs.ErrNotExist) || isNoRecord(err):
		return nil
	case err != nil:
		return err
	case b.checkOwner(found) == nil:
		page.held = append(page.held, backend.Held{ID: id, Claim: found.Claim, Retained: found.Retained})
	}
	return nil
}

// isNoRecord reports whether what has a record's name is a directory or a link, or too
// long. Not so a file that may not be read: that is no answer.
func isNoRecord(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EINVAL, syscall.EISDIR, syscall.ELOOP, syscall.EFBIG} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// idsAfter are the first ids after one that have records, in order, and whether there are
// more.
func idsAfter(ctx context.Context, dir tree.Dir, after string) (ids []string, more bool, err error) {
	for range listings {
		ids, more, err = listIDs(ctx, dir, after)
		if !errors.Is(err, tree.ErrCursor) {
			break
		}
	}
	return ids, more, err
}

func listIDs(ctx context.Context, dir tree.Dir, after string) (ids []string, more bool, err error) {
	keepFirst := func() {
		slices.Sort(ids)
		if len(ids) > maxPage {
			ids, more = ids[:maxPage], true
		}
	}
	for entry, err := range dir.List(ctx, tree.Cursor{}) {
		if err != nil {
			return nil, false, err
		}
		id, isRecord := strings.CutSuffix(entry.Name, recordSuffix)
		if isRecord && id > after && validID.MatchString(id) {
			ids = append(ids, id)
		}
		if len(ids) == 2*maxPage {
			keepFirst()
		}
	}
	keepFirst()
	return ids, more, nil
}
