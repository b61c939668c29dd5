// Package listing lists what the records in a directory of a share name, in pages.
package listing

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
	// records come and go.
	listings = 5
)

// Suffix ends the name of each record, after its id.
const Suffix = ".json"

// Page is what was read, and the id after which the next page begins: "" after the last.
type Page struct {
	Held []backend.Held
	Next string
}

// Records are a directory of a share with a record for each id.
type Records struct {
	Folder string
	IsID   func(id string) bool
	// Read returns what a record says: nil for one that isn't the backend's, or is damaged.
	Read func(ctx context.Context, dir tree.Dir, id string) (*backend.Held, error)
}

// AddAfter reads the records after an id until the time ends, at least one, and adds what they say to a page. Each page
// lists all names, so what comes and goes between two pages moves nothing else to another page.
func (r Records) AddAfter(ctx context.Context, root tree.Dir, after string, until time.Time, page *Page) error {
	err := tree.Within(ctx, root, r.Folder, func(dir tree.Dir) error {
		ids, more, err := r.idsAfter(ctx, dir, after)
		if err != nil {
			return err
		}
		for i, id := range ids {
			if err := r.addTo(ctx, dir, id, page); err != nil {
				return err
			}
			if more = more || i+1 < len(ids); more && (time.Now().After(until) || i+1 == len(ids)) {
				page.Next = id
				return nil
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// addTo adds what a record says to a page. It leaves out records that were removed after the directory was listed.
func (r Records) addTo(ctx context.Context, dir tree.Dir, id string, page *Page) error {
	found, err := r.Read(ctx, dir, id)
	switch {
	case errors.Is(err, backend.Conflict) || errors.Is(err, fs.ErrNotExist) || isNoRecord(err):
		return nil
	case err != nil:
		return err
	case found != nil:
		page.Held = append(page.Held, *found)
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
func (r Records) idsAfter(ctx context.Context, dir tree.Dir, after string) (ids []string, more bool, err error) {
	for range listings {
		ids, more, err = r.listIDs(ctx, dir, after)
		if !errors.Is(err, tree.ErrCursor) {
			break
		}
	}
	return ids, more, err
}

func (r Records) listIDs(ctx context.Context, dir tree.Dir, after string) (ids []string, more bool, err error) {
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
		id, isRecord := strings.CutSuffix(entry.Name, Suffix)
		if isRecord && id > after && r.IsID(id) {
			ids = append(ids, id)
		}
		if len(ids) == 2*maxPage {
			keepFirst()
		}
	}
	keepFirst()
	return ids, more, nil
}
