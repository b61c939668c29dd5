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
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// maxPage is how many records one call reads.
	maxPage = 5000
	// listings is how often the directory of records is listed, if a server can't continue because
	// volumes come and go.
	listings = 5
)

// listed is a page of volumes, and the id after which the next page begins: "" after the last.
type listed struct {
	held []backend.Held
	next string
}

// List returns the volumes that are recorded as this backend's.
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
	read, err := onShare(ctx, b, "listing volumes", func(ctx context.Context, root tree.Dir) (listed, error) {
		return b.listAfter(ctx, root, id, time.Now().Add(b.share.Slice))
	})
	return read.held, read.next, err
}

// listAfter reads the records after an id, and keeps this backend's. Each page lists all names, so
// volumes that come and go between two pages move no other volume to another page.
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

// addTo adds the volume of a record to a page. It leaves out records that are damaged or were removed after the
// directory was listed.
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

// isNoRecord reports whether a record's name is that of a directory or a link, or of a file that is
// too long. A file without read permission may be a record.
func isNoRecord(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EINVAL, syscall.EISDIR, syscall.ELOOP, syscall.EFBIG} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// idsAfter returns the first ids with records after an id, in order, and whether there are more.
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
