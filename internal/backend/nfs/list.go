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
func (b *nfsBackend) list(ctx context.Context, root tree.Dir) ([]backend.Held, error) {
	var held []backend.Held
	ids, err := recordedIDs(ctx, root)
	for _, id := range ids {
		found, err := findRecord(ctx, root, id)
		if errors.Is(err, backend.Conflict) {
			// A record that can't be read is nobody's. Delete says so of it.
			continue
		}
		if err != nil {
			return nil, err
		}
		if found != nil && b.checkOwner(found) == nil {
			held = append(held, backend.Held{ID: id, Claim: found.Claim})
		}
	}
	return held, err
}

func recordedIDs(ctx context.Context, root tree.Dir) ([]string, error) {
	var ids []string
	err := tree.Within(ctx, root, volumes, func(dir tree.Dir) error {
		for entry, err := range dir.List(ctx) {
			if err != nil {
				return err
			}
			if id, isRecord := strings.CutSuffix(entry.Name, ".json"); isRecord && validID.MatchString(id) {
				ids = append(ids, id)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	slices.Sort(ids)
	return ids, err
}
