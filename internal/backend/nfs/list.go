package nfs

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// list reads the records of all volumes, and keeps this backend's.
func (b *nfsBackend) list(ctx context.Context, root tree.Dir) (held []backend.Held, err error) {
	err = tree.Within(ctx, root, volumes, func(dir tree.Dir) error {
		ids, err := recordedIDs(ctx, dir)
		for _, id := range ids {
			found, err := readRecord(ctx, dir, id)
			switch {
			case errors.Is(err, backend.Conflict) || errors.Is(err, fs.ErrNotExist):
				// One that can't be read is nobody's, as Delete says of it; another
				// was removed meanwhile.
				continue
			case err != nil:
				return err
			case b.checkOwner(found) == nil:
				held = append(held, backend.Held{ID: id, Claim: found.Claim, Retained: found.Retained})
			}
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return held, err
}

func recordedIDs(ctx context.Context, dir tree.Dir) ([]string, error) {
	var ids []string
	for entry, err := range dir.List(ctx, tree.Cursor{}) {
		if err != nil {
			return nil, err
		}
		if id, isRecord := strings.CutSuffix(entry.Name, recordSuffix); isRecord && validID.MatchString(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}
