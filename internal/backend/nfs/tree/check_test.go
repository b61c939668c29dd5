package tree_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/backend/nfs/mounted"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// maxPlace is how large a place may be, written down: names of 255 bytes, 64 deep.
const maxPlace = 32 << 10

// inspectAll inspects a directory, one entry with each call, and each as another process;
// between two it calls between. It returns how many entries were inspected.
func inspectAll(t *testing.T, dir tree.Dir, self uint32, between func()) (int64, error) {
	t.Helper()
	const most = 100_000
	written := []byte("{}")
	for range most {
		at := tree.Position{}
		must(t, json.Unmarshal(written, &at))
		if !at.Valid() {
			t.Fatalf("it goes on at %s", written)
		}
		err := tree.CheckRemovable(t.Context(), dir, self, &at, time.Time{})
		if !errors.Is(err, tree.ErrUnfinished) {
			return at.Seen, err
		}
		if written, err = json.Marshal(at); len(written) > maxPlace || err != nil {
			t.Fatalf("a place of %d bytes, %v", len(written), err)
		}
		if between != nil {
			between()
		}
	}
	t.Fatalf("there is no end: %s", written)
	return 0, nil
}

// weak is a directory with the rights of a user other than root.
type weak struct {
	tree.Dir
	uid uint32
}

func (w weak) Open(ctx context.Context, name string) (tree.Dir, error) {
	opened, err := w.Dir.Open(ctx, name)
	return weak{opened, w.uid}, err
}

func (w weak) Writable(ctx context.Context) (bool, error) {
	info, err := w.Stat(ctx)
	return info.UID == w.uid || info.Mode&0o002 != 0, err
}

func TestWhatCannotBeRemovedIsFoundBeforeAnythingIs(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it gives files away")
	}
	const self, other = 65534, 1000
	for name, test := range map[string]struct {
		owner     int
		mode      os.FileMode
		removable bool
	}{
		"one's own":                          {self, 0o700, true},
		"another's":                          {other, 0o755, false},
		"another's, for all to write":        {other, 0o777, true},
		"another's, for each to write alone": {other, 0o777 | os.ModeSticky, false},
		"one's own, for each to write alone": {self, 0o777 | os.ModeSticky, true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := besideCanary(t)
			mounttest.Tmpfs(t, folder)
			deep := filepath.Join(folder, "volume", "deep")
			must(t, os.MkdirAll(filepath.Join(deep, "full"), 0o755), os.Chown(deep, test.owner, 0), os.Chmod(deep, test.mode))
			must(t, os.Chown(filepath.Join(folder, "volume"), self, 0), os.Chown(filepath.Join(deep, "full"), other, 0))
			root, err := mounted.Open(folder)
			must(t, err)
			defer root.Close()
			err = tree.Within(t.Context(), weak{root, self}, "volume", func(dir tree.Dir) error {
				_, err := inspectAll(t, dir, self, nil)
				return err
			})
			if removable := err == nil; removable != test.removable || !removable && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}

func TestAnInspectionContinuesWhereTheLastCallEndedHoweverDeepAndWideATreeIs(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, _ string) {
		must(t, root.MakeDir(t.Context(), "volume", 0o700))
		must(t, tree.Within(t.Context(), root, "volume", func(dir tree.Dir) error {
			for i := range 700 {
				must(t, dir.MakeDir(t.Context(), fmt.Sprintf("%d-%s", i, strings.Repeat("w", 250)), 0o700))
			}
			levels, length := 640, 255
			if strings.HasSuffix(t.Name(), "/client") {
				// This server takes no path of more than 4,095 bytes.
				levels, length = 90, 30
			}
			return makeDeep(t.Context(), dir, strings.Repeat("d", length), levels)
		}))
		open, most := 0, 0
		must(t, tree.Within(t.Context(), counted{root, &open, &most}, "volume", func(dir tree.Dir) error {
			seen, err := inspectAll(t, dir, 0, nil)
			// It inspects 64 directories deep.
			if seen != 700+64 {
				t.Errorf("%d entries were inspected", seen)
			}
			return err
		}))
		if open != 0 || most > 70 {
			t.Errorf("%d directories were open at once, and %d still are", most, open)
		}
	})
}

// makeDeep makes directories, one in the other. Their path is longer than a call takes.
func makeDeep(ctx context.Context, dir tree.Dir, name string, levels int) error {
	if levels == 0 {
		return nil
	}
	err := dir.MakeDir(ctx, name, 0o700)
	if err != nil {
		return err
	}
	next, err := dir.Open(ctx, name)
	if err != nil {
		return err
	}
	defer next.Close()
	return makeDeep(ctx, next, name, levels-1)
}

func TestAnInspectionEndsWhateverChangesWhileItRuns(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		volume := filepath.Join(folder, "volume")
		for i := range 100 {
			must(t, os.MkdirAll(filepath.Join(volume, fmt.Sprint(i), "a", "b"), 0o755))
		}
		calls := 0
		must(t, tree.Within(t.Context(), root, "volume", func(dir tree.Dir) error {
			_, err := inspectAll(t, dir, 0, func() {
				calls++
				way := filepath.Join(volume, fmt.Sprint(calls%100))
				must(t, os.RemoveAll(way))
				if calls%3 == 0 && calls < 100 {
					must(t, os.WriteFile(way, nil, 0o600))
				}
			})
			// This server refuses each cursor of a directory that was changed.
			if errors.Is(err, tree.ErrChanging) {
				err = nil
			}
			return err
		}))
	})
}

// outdated is a directory that refuses cursors.
type outdated struct{ tree.Dir }

func (o outdated) List(ctx context.Context, from tree.Cursor) iter.Seq2[tree.Entry, error] {
	if from == (tree.Cursor{}) {
		return o.Dir.List(ctx, from)
	}
	return func(yield func(tree.Entry, error) bool) { yield(tree.Entry{}, tree.ErrCursor) }
}

func TestAnInspectionOfAChangingTreeReportsThatAndEndsLater(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		must(t, os.Mkdir(filepath.Join(folder, "a"), 0o755), os.Mkdir(filepath.Join(folder, "b"), 0o755))
		at := tree.Position{}
		err := tree.ErrUnfinished
		for range 1000 {
			if err = tree.CheckRemovable(t.Context(), outdated{root}, 0, &at, time.Time{}); !errors.Is(err, tree.ErrUnfinished) {
				break
			}
		}
		if !errors.Is(err, tree.ErrChanging) {
			t.Errorf("it ended with %v", err)
		}
		must(t, tree.CheckRemovable(t.Context(), root, 0, &at, time.Now().Add(time.Hour)))
	})
}

func TestARefusedDirectoryIsInspectedAgainAndThenPassed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it gives files away")
	}
	const self, other = 65534, 1000
	folder := besideCanary(t)
	mounttest.Tmpfs(t, folder)
	names := make([]string, 0, 64)
	for range 60 {
		names = append(names, strings.Repeat("n", 60))
	}
	refusing := filepath.Join(folder, "volume", filepath.Join(names...))
	must(t, os.MkdirAll(filepath.Join(refusing, "full"), 0o777))
	must(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, _ error) error { return os.Chown(path, self, self) }))
	must(t, os.Chown(refusing, other, other))
	root, err := mounted.Open(folder)
	must(t, err)
	defer root.Close()
	at := tree.Position{}
	look := func() error {
		return tree.Within(t.Context(), weak{root, self}, "volume", func(dir tree.Dir) error {
			return tree.CheckRemovable(t.Context(), dir, self, &at, time.Now().Add(time.Hour))
		})
	}
	for range 3 {
		if err := look(); !errors.Is(err, fs.ErrPermission) || len(err.Error()) > 400 {
			t.Errorf("it ended with %d bytes: %v", len(err.Error()), err)
		}
	}
	seen := at.Seen
	must(t, os.Chown(refusing, self, self), look())
	if at.Seen != seen+1 {
		t.Errorf("it went on after %d entries, and ended after %d", seen, at.Seen)
	}
}

func TestAnInvalidPositionIsNotUsed(t *testing.T) {
	for name, text := range map[string]string{
		"a name for the top": `{"steps": [{"name": "YQ=="}]}`,
		"no name":            `{"steps": [{}, {}]}`,
		"a way out":          `{"steps": [{}, {"name": "Li4="}]}`,
		"a path":             `{"steps": [{}, {"name": "YS9i"}]}`,
		"too deep":           `{"steps": [{}` + strings.Repeat(`, {"name": "YQ=="}`, 640) + `]}`,
		"a number below 0":   `{"seen": -1}`,
	} {
		at := tree.Position{}
		must(t, json.Unmarshal([]byte(text), &at))
		if at.Valid() {
			t.Errorf("%s is taken for a place", name)
		}
	}
}
