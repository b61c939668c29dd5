package tree_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/backend/nfs/mounted"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// read counts the names that are read of directories which are open.
type read struct {
	tree.Dir
	held, most *int
	mine       int
}

func (r *read) Open(ctx context.Context, name string) (tree.Dir, error) {
	opened, err := r.Dir.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &read{Dir: opened, held: r.held, most: r.most}, nil
}

func (r *read) List(ctx context.Context, from tree.Cursor) iter.Seq2[tree.Entry, error] {
	return func(yield func(tree.Entry, error) bool) {
		*r.held, r.mine = *r.held-r.mine, 0
		for entry, err := range r.Dir.List(ctx, from) {
			*r.held, r.mine = *r.held+1, r.mine+1
			*r.most = max(*r.most, *r.held)
			if !yield(entry, err) {
				return
			}
		}
	}
}

func (r *read) Close() error {
	*r.held, r.mine = *r.held-r.mine, 0
	return r.Dir.Close()
}

func (r *read) Rename(ctx context.Context, name string, to tree.Dir, newName string) error {
	inner, _ := to.(*read)
	return r.Dir.Rename(ctx, name, inner.Dir, newName)
}

func TestRemovingAWideAndDeepTreeHoldsFewNames(t *testing.T) {
	const levels, files, batch = 5, 2560, 256
	folder := besideCanary(t)
	mounttest.Tmpfs(t, folder)
	root, err := mounted.Open(folder)
	must(t, err)
	defer root.Close()
	place := filepath.Join(folder, "volume")
	for range levels {
		must(t, os.Mkdir(place, 0o755))
		for i := range files {
			must(t, os.WriteFile(filepath.Join(place, fmt.Sprintf("%05d", i)), nil, 0o600))
		}
		place = filepath.Join(place, "0-deeper")
	}
	held, most := 0, 0
	err = tree.RemoveTree(t.Context(), &read{Dir: root, held: &held, most: &most}, "volume", time.Now().Add(time.Hour))
	if err != nil || most > levels*batch || most < batch {
		t.Errorf("%d names were held at once, and it ended with %v", most, err)
	}
}
