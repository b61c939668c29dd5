package tree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// copyAfter makes a copy that takes over from an earlier one.
func copyAfter(t *testing.T, root tree.Dir, at *tree.CopyPosition, until time.Time, as func(tree.Dir) tree.Dir) error {
	t.Helper()
	return tree.Within(t.Context(), root, "earlier", func(earlier tree.Dir) error {
		return tree.Within(t.Context(), root, "from", func(from tree.Dir) error {
			return tree.Within(t.Context(), root, "to", func(to tree.Dir) error {
				return tree.Copy{From: from, To: to, Earlier: []tree.Dir{as(earlier)}, Until: until}.Run(t.Context(), at)
			})
		})
	})
}

func asItIs(dir tree.Dir) tree.Dir { return dir }

// givenUp makes a whole copy, which then counts as an earlier one.
func givenUp(t *testing.T, root tree.Dir, folder string) {
	t.Helper()
	source(t, folder)
	must(t, copyOnce(t, root, &tree.CopyPosition{}, never()))
	must(t, os.Rename(folder+"/to", folder+"/earlier"), os.Mkdir(filepath.Join(folder, "to"), 0o700))
}

func fileAt(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	return info
}

func TestACopyTakesOverTheFilesThatAnEarlierOneCompleted(t *testing.T) {
	for name, until := range map[string]func() time.Time{"in one call": never, "in many": atOnce} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
				givenUp(t, root, folder)
				files := map[string]os.FileInfo{}
				for _, name := range []string{"a/small", "a/b/large", "a/b/c/none", "second-name"} {
					files[name] = fileAt(t, folder+"/earlier/"+name)
				}
				at, err := &tree.CopyPosition{}, tree.ErrUnfinished
				for calls := 0; errors.Is(err, tree.ErrUnfinished) && calls < 100; calls++ {
					err = copyAfter(t, root, at, until(), asItIs)
				}
				must(t, err)
				expectSame(t, folder)
				for name, before := range files {
					if !os.SameFile(before, fileAt(t, folder+"/to/"+name)) {
						t.Errorf("%s was copied once more", name)
					}
				}
				if at.Bytes != 320_000+5+5+3 {
					t.Errorf("it counts %d bytes", at.Bytes)
				}
			})
		})
	}
}

func TestACopyTakesOverNothingThatIsNotTheSource(t *testing.T) {
	for name, change := range map[string]func(folder string) error{
		"the source was changed": func(folder string) error {
			return errors.Join(os.WriteFile(folder+"/from/a/small", []byte("other"), 0o640))
		},
		"it has another mode": func(folder string) error { return os.Chmod(folder+"/earlier/a/small", 0o600) },
		"it is not complete": func(folder string) error {
			now := time.Now()
			return os.Chtimes(folder+"/earlier/a/small", now, now)
		},
		"it is too short": func(folder string) error {
			past := time.Unix(1_000_000_000, 0)
			return errors.Join(os.Truncate(folder+"/earlier/a/small", 3), os.Chtimes(folder+"/earlier/a/small", past, past))
		},
		"it is a symlink": func(folder string) error {
			return errors.Join(os.Remove(folder+"/earlier/a/small"), os.Symlink("b/large", folder+"/earlier/a/small"))
		},
		"its directory is a file": func(folder string) error {
			return errors.Join(os.RemoveAll(folder+"/earlier/a"), os.WriteFile(folder+"/earlier/a", nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
				givenUp(t, root, folder)
				must(t, change(folder))
				must(t, copyAfter(t, root, &tree.CopyPosition{}, never(), asItIs))
				expectSame(t, folder)
				if _, err := os.Lstat(folder + "/earlier/a/small"); err == nil {
					t.Error("what is of no use still takes room")
				}
			})
		})
	}
}

func TestAFileThatWasTakenOverIsNotCopiedWhenItsListingBeginsAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		givenUp(t, root, folder)
		before := fileAt(t, folder+"/earlier/a/b/large")
		must(t, copyAfter(t, root, &tree.CopyPosition{}, never(), asItIs))

		must(t, copyAfter(t, root, &tree.CopyPosition{Position: tree.Position{Restarts: 1}}, never(), asItIs))

		expectSame(t, folder)
		if !os.SameFile(before, fileAt(t, folder+"/to/a/b/large")) {
			t.Error("it was copied once more")
		}
	})
}

// busy is the directory of an attempt that is still at work: it makes each file again just before it is moved.
type busy struct {
	tree.Dir
	path string
}

func (b busy) Open(ctx context.Context, name string) (tree.Dir, error) {
	opened, err := b.Dir.Open(ctx, name)
	return busy{opened, b.path + "/" + name}, err
}

func (b busy) Rename(ctx context.Context, name string, to tree.Dir, newName string) error {
	path := b.path + "/" + name
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("not yet"), 0o600)); err != nil {
		return err
	}
	return b.Dir.Rename(ctx, name, to, newName)
}

func TestACopyTakesOverNothingThatIsBeingMadeAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		givenUp(t, root, folder)
		must(t, copyAfter(t, root, &tree.CopyPosition{}, never(), func(dir tree.Dir) tree.Dir { return busy{dir, folder + "/earlier"} }))
		expectSame(t, folder)
	})
}

func TestAFileThatIsCompleteIsNeverWrittenAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		must(t, os.Mkdir(folder+"/from", 0o755), os.Mkdir(folder+"/to", 0o755), os.WriteFile(folder+"/from/file", []byte("first"), 0o600))
		must(t, copyOnce(t, root, &tree.CopyPosition{}, never()))
		must(t, os.Rename(folder+"/to/file", folder+"/moved"), os.Link(folder+"/moved", folder+"/to/file"))
		must(t, os.WriteFile(folder+"/from/file", []byte("second"), 0o600))

		must(t, copyOnce(t, root, &tree.CopyPosition{Position: tree.Position{Restarts: 1}}, never()))

		for name, want := range map[string]string{"moved": "first", "to/file": "second"} {
			if content, err := os.ReadFile(filepath.Join(folder, name)); string(content) != want || err != nil {
				t.Errorf("%s has %q, %v", name, content, err)
			}
		}
	})
}
