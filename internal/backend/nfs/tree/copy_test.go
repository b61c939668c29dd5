package tree_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// atOnce and soon are when a call ends: after its first entry, and never.
func atOnce() time.Time { return time.Now().Add(-time.Second) }
func never() time.Time  { return time.Now().Add(time.Hour) }

// source makes a tree with all that is copied, and some that isn't.
func source(t *testing.T, folder string) {
	t.Helper()
	top := filepath.Join(folder, "from")
	large := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	must(t,
		os.MkdirAll(top+"/a/b/c", 0o755), os.Mkdir(filepath.Join(top, "empty"), 0o700),
		os.WriteFile(top+"/a/small", []byte("small"), 0o640), os.WriteFile(top+"/a/b/large", large, 0o600),
		os.WriteFile(top+"/a/b/c/none", nil, 0o444), os.WriteFile(top+"/with\nnewline", []byte("odd"), 0o600),
		os.Symlink("/etc/passwd", top+"/a/absolute"), os.Symlink("../canary", filepath.Join(top, "up")),
		os.Link(top+"/a/small", filepath.Join(top, "second-name")),
		os.Chmod(top+"/a/b", 0o750), unix.Mkfifo(filepath.Join(top, "pipe"), 0o600),
		os.Mkdir(filepath.Join(folder, "to"), 0o700),
	)
	past := time.Unix(1_000_000_000, 0)
	for _, name := range []string{"a/small", "a/b/large", "a/b", "a"} {
		must(t, os.Chtimes(filepath.Join(top, name), past, past))
	}
}

// needsReadOnlyFiles skips a test that copies a read-only file twice, where this process may write none. A real server
// lets a file's owner write it.
func needsReadOnlyFiles(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it writes read-only files")
	}
}

// copyOnce makes one call of a copy.
func copyOnce(t *testing.T, root tree.Dir, at *tree.CopyPosition, until time.Time) error {
	t.Helper()
	return tree.Within(t.Context(), root, "from", func(from tree.Dir) error {
		return tree.Within(t.Context(), root, "to", func(to tree.Dir) error { return tree.Copy{From: from, To: to, Until: until}.Run(t.Context(), at) })
	})
}

// described says what is in a tree: names, types, modes, times, and content.
func described(t *testing.T, top string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == top {
			return err
		}
		info, err := entry.Info()
		if err != nil || entry.Type() == os.ModeNamedPipe {
			return err
		}
		text := ""
		switch {
		case entry.Type() == os.ModeSymlink:
			text, err = os.Readlink(path)
		case entry.Type().IsRegular():
			var content []byte
			content, err = os.ReadFile(path)
			text = fmt.Sprintf("%d %x %s", len(content), content[:min(8, len(content))], info.ModTime().UTC())
		case info.Name() != "empty" && info.Name() != "c":
			text = info.ModTime().UTC().String()
		}
		fmt.Fprintf(&all, "%q %s %s\n", strings.TrimPrefix(path, top), info.Mode(), text)
		return err
	}))
	return all.String()
}

func expectSame(t *testing.T, folder string) {
	t.Helper()
	if from, to := described(t, filepath.Join(folder, "from")), described(t, filepath.Join(folder, "to")); from != to {
		t.Errorf("it was:\n%s\nand the copy is:\n%s", from, to)
	}
}

func TestACopyIsWholeWithOwnersModesAndTimes(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		source(t, folder)
		at := &tree.CopyPosition{}
		must(t, copyOnce(t, root, at, never()))
		expectSame(t, folder)
		if at.Bytes != 320_000+5+5+3 {
			t.Errorf("it counts %d bytes", at.Bytes)
		}
	})
}

func TestACopyGoesOnWhereItWasInterrupted(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		source(t, folder)
		at, calls := &tree.CopyPosition{}, 0
		for err := tree.ErrUnfinished; err != nil; calls++ {
			if err = copyOnce(t, root, at, atOnce()); err != nil && !errors.Is(err, tree.ErrUnfinished) || calls > 100 {
				t.Fatalf("after %d calls: %v", calls, err)
			}
		}
		if calls < 8 {
			t.Errorf("it took %d calls", calls)
		}
		expectSame(t, folder)
	})
}

func TestACopyIsRepeatedFromAnyEarlierPosition(t *testing.T) {
	needsReadOnlyFiles(t)
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		source(t, folder)
		at, earlier := &tree.CopyPosition{}, []tree.CopyPosition{{}}
		for err := tree.ErrUnfinished; err != nil; {
			err = copyOnce(t, root, at, atOnce())
			again := *at
			again.Steps = append([]tree.Step(nil), at.Steps...)
			earlier = append(earlier, again)
		}
		for _, one := range earlier {
			must(t, copyOnce(t, root, &one, never()))
			expectSame(t, folder)
		}
	})
}

func TestHolesStayHoles(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		const size = 16 << 20
		must(t, os.Mkdir(filepath.Join(folder, "from"), 0o755), os.Mkdir(filepath.Join(folder, "to"), 0o755),
			os.WriteFile(folder+"/from/sparse", []byte("begin"), 0o600), os.Truncate(folder+"/from/sparse", size))
		must(t, copyOnce(t, root, &tree.CopyPosition{}, never()))
		var stat unix.Stat_t
		must(t, unix.Stat(folder+"/to/sparse", &stat))
		if stat.Size != size || stat.Blocks*512 > size/4 {
			t.Errorf("it has %d bytes, and takes %d", stat.Size, stat.Blocks*512)
		}
	})
}

func TestWhatIsRemovedWhileATreeIsCopiedIsNoError(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		source(t, folder)
		at := &tree.CopyPosition{}
		for range 5 {
			_ = copyOnce(t, root, at, atOnce())
		}
		must(t, os.RemoveAll(folder+"/from/a"))
		must(t, copyOnce(t, root, at, never()))
	})
}

func TestATreeThatCannotBeCopiedIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		must(t, os.MkdirAll(filepath.Join(folder, "from", strings.Repeat("d/", 70)), 0o755), os.Mkdir(filepath.Join(folder, "to"), 0o755))
		if err := copyOnce(t, root, &tree.CopyPosition{}, never()); !errors.Is(err, tree.ErrTooDeep) {
			t.Errorf("of one that is too deep it says %v", err)
		}
	})
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		must(t, os.Mkdir(filepath.Join(folder, "from"), 0o755), os.Mkdir(filepath.Join(folder, "to"), 0o755),
			os.WriteFile(folder+"/from/huge", nil, 0o600), os.Truncate(folder+"/from/huge", 1<<30))
		err := tree.Within(t.Context(), root, "from", func(from tree.Dir) error {
			return tree.Within(t.Context(), root, "to", func(to tree.Dir) error {
				return tree.Copy{From: from, To: to, Most: 1 << 20, Until: never()}.Run(t.Context(), &tree.CopyPosition{})
			})
		})
		if !errors.Is(err, tree.ErrTooLarge) {
			t.Errorf("of one that is too large it says %v", err)
		}
	})
}

func TestAListingThatCannotContinueIsBegunAgainAndNotForEver(t *testing.T) {
	needsReadOnlyFiles(t)
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		source(t, folder)
		at, err := &tree.CopyPosition{}, tree.ErrUnfinished
		for calls := 0; errors.Is(err, tree.ErrUnfinished) && calls < 1000; calls++ {
			err = tree.Within(t.Context(), root, "from", func(from tree.Dir) error {
				return tree.Within(t.Context(), root, "to", func(to tree.Dir) error {
					return tree.Copy{From: outdated{from}, To: to, Until: atOnce()}.Run(t.Context(), at)
				})
			})
		}
		if !errors.Is(err, tree.ErrChanging) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// failing is a directory in which nothing can be made, as long as it is full.
type failing struct {
	tree.Dir
	full *bool
}

func (f failing) MakeDir(ctx context.Context, name string, mode uint32) error {
	if *f.full {
		return unix.ENOSPC
	}
	return f.Dir.MakeDir(ctx, name, mode)
}

func (f failing) MakeLink(ctx context.Context, name, text string) error {
	if *f.full {
		return unix.ENOSPC
	}
	return f.Dir.MakeLink(ctx, name, text)
}

func (f failing) MakeFile(ctx context.Context, name string) (tree.RegularFile, error) {
	if *f.full {
		return nil, unix.ENOSPC
	}
	return f.Dir.MakeFile(ctx, name)
}

func TestWhatFailedToBeCopiedIsCopiedByTheNextCall(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		source(t, folder)
		at, full := &tree.CopyPosition{}, true
		for calls := 0; ; calls++ {
			full = calls%2 == 0
			err := tree.Within(t.Context(), root, "from", func(from tree.Dir) error {
				return tree.Within(t.Context(), root, "to", func(to tree.Dir) error {
					return tree.Copy{From: from, To: failing{to, &full}, Until: atOnce()}.Run(t.Context(), at)
				})
			})
			if err == nil {
				break
			}
			if !errors.Is(err, tree.ErrUnfinished) && !errors.Is(err, unix.ENOSPC) || calls > 200 {
				t.Fatal(err)
			}
		}
		expectSame(t, folder)
	})
}
