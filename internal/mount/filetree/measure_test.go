package filetree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

const mebibyte = 1 << 20

func measure(t *testing.T, path string, most int64) (filetree.Tree, error) {
	t.Helper()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	return filetree.MeasureTree(t.Context(), dir, most)
}

func store(t *testing.T, path string, bytes int) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, make([]byte, bytes), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestATreeIsMeasuredWithAllBelow(t *testing.T) {
	dir := t.TempDir()
	store(t, filepath.Join(dir, "file"), mebibyte)
	store(t, filepath.Join(dir, "a", "b", "file"), mebibyte)
	if err := os.Link(filepath.Join(dir, "file"), filepath.Join(dir, "a", "again")); err != nil {
		t.Fatal(err)
	}
	tree, err := measure(t, dir, 100)
	if err != nil || tree.Inodes != 5 || tree.Bytes < 2*mebibyte || tree.Bytes > 5*mebibyte/2 {
		t.Errorf("got %+v, %v", tree, err)
	}
}

func TestMeasuringFollowsNoSymlinkAndCrossesNoMount(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir, other := t.TempDir(), t.TempDir()
	store(t, filepath.Join(other, "file"), mebibyte)
	inner := filepath.Join(dir, "inner")
	if err := errors.Join(os.Symlink(other, filepath.Join(dir, "link")), os.Mkdir(inner, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := (mount.Kernel{}).Tmpfs(inner, mount.TmpfsOptions{Bytes: 4 * mebibyte, Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = (mount.Kernel{}).Unmount(inner) })
	store(t, filepath.Join(inner, "file"), mebibyte)
	tree, err := measure(t, dir, 100)
	if err != nil || tree.Inodes != 2 || tree.Bytes >= mebibyte {
		t.Errorf("got %+v, %v", tree, err)
	}
}

func TestATreeThatIsTooLargeIsNotMeasured(t *testing.T) {
	dir, deep := t.TempDir(), t.TempDir()
	for i := range 20 {
		store(t, filepath.Join(dir, strconv.Itoa(i)), 1)
	}
	if _, err := measure(t, dir, 10); !errors.Is(err, filetree.ErrTooLarge) {
		t.Errorf("20 files of 10: %v", err)
	}
	path := deep
	for range 100 {
		path = filepath.Join(path, "d")
	}
	store(t, path, 1)
	if _, err := measure(t, deep, 1000); !errors.Is(err, filetree.ErrTooLarge) {
		t.Errorf("100 directories in one another: %v", err)
	}
}

func TestMeasuringEndsWithItsContext(t *testing.T) {
	dir, err := os.Open("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := filetree.MeasureTree(ctx, dir, 1<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
