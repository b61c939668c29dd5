package tree_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/backend/nfs/mounted"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfs3"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// onBoth runs a test over the client and over a mount. Folder is where the share's
// files are seen on this machine; beside it lies a canary.
func onBoth(t *testing.T, test func(t *testing.T, root tree.Dir, folder string)) {
	t.Helper()
	t.Run("client", func(t *testing.T) {
		folder := besideCanary(t)
		server, err := nfstest.Serve(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		client := nfs3.NewClient(nfstest.Host, nfs3.Options{Port: server.Port(), MountPort: server.Port(), CallTimeout: 10 * time.Second})
		defer client.Close()
		root, err := client.Open(t.Context(), nfstest.Share)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		test(t, root, folder)
	})
	t.Run("mount", func(t *testing.T) {
		folder := besideCanary(t)
		mounttest.Tmpfs(t, folder)
		root, err := mounted.Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		test(t, root, folder)
	})
}

func besideCanary(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	folder, canary := filepath.Join(top, "share"), filepath.Join(top, "canary")
	if err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(canary, []byte("alive"), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if data, err := os.ReadFile(canary); string(data) != "alive" {
			t.Errorf("the canary beside the share is dead: %q, %v", data, err)
		}
	})
	return folder
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsWrittenAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, _ string) {
		must(t, root.MakeDir(t.Context(), "a", 0o700), root.MakeDir(t.Context(), "tmp", 0o700))
		long := strings.Repeat("long ", 10000)
		must(t, tree.WriteFile(t.Context(), root, "a/file", "tmp/1", []byte(long)))
		must(t, tree.WriteFile(t.Context(), root, "a/file", "tmp/2", []byte("short")))

		data, err := tree.ReadFile(t.Context(), root, "a/file", 100)

		if string(data) != "short" || err != nil {
			t.Errorf("the file has %q, %v", data, err)
		}
		if there, err := tree.Exists(t.Context(), root, "tmp/2"); there || err != nil {
			t.Errorf("something is left aside: %v", err)
		}
	})
}

func TestALongFileIsReadWholeOrNot(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, _ string) {
		long := strings.Repeat("long ", 10000)
		must(t, root.WriteFile(t.Context(), "file", []byte(long)))
		if data, err := root.ReadFile(t.Context(), "file", len(long)); string(data) != long || err != nil {
			t.Errorf("%d bytes were read: %v", len(data), err)
		}
		if _, err := root.ReadFile(t.Context(), "file", len(long)-1); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("a file that is too long: %v", err)
		}
	})
}

func TestALinkIsMadeOnceAndNeverFollowed(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		must(t, root.MakeLink(t.Context(), "up", ".."))
		if err := root.MakeLink(t.Context(), "up", "elsewhere"); err == nil {
			t.Error("it was made twice")
		}
		if text, err := root.ReadLink(t.Context(), "up"); text != ".." || err != nil {
			t.Errorf("it says %q, %v", text, err)
		}
		if _, err := root.Open(t.Context(), "up"); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("opening it: %v", err)
		}
		if err := tree.EnsureDir(t.Context(), root, "up/made", 0o700); err == nil {
			t.Error("a directory was made behind it")
		}
		if _, err := root.ReadFile(t.Context(), "up", 10); err == nil {
			t.Error("it was read as a file")
		}
		must(t, os.Symlink(filepath.Join(folder, "..", "canary"), filepath.Join(folder, "file")))
		if data, err := root.ReadFile(t.Context(), "file", 10); err == nil {
			t.Errorf("it led to %q", data)
		}
	})
}

func TestTheParentsOfADirectoryAreMadeWithIt(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		for range 2 {
			must(t, tree.EnsureDir(t.Context(), root, "a/b/c", 0o755))
		}
		if info, err := tree.Lookup(t.Context(), root, "a/b/c"); info.Type != tree.Directory || err != nil {
			t.Errorf("there is %+v, %v", info, err)
		}
		must(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o600))
		if err := tree.EnsureDir(t.Context(), root, "file/b", 0o755); err == nil {
			t.Error("a directory was made in a file")
		}
		if _, err := tree.Lookup(t.Context(), root, "x/y"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading an absent path: %v", err)
		}
	})
}

func TestADirectoryGetsAnOwnerAndAMode(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: only root gives files away")
	}
	onBoth(t, func(t *testing.T, root tree.Dir, _ string) {
		wanted := tree.Access{UID: 1000, GID: 2000, Mode: 0o751}
		must(t, root.MakeDir(t.Context(), "a", 0o700))
		must(t, tree.Within(t.Context(), root, "a", func(dir tree.Dir) error { return dir.SetAccess(t.Context(), wanted) }))
		if info, err := root.Lookup(t.Context(), "a"); info.Access != wanted || err != nil {
			t.Errorf("it is %+v, %v", info, err)
		}
	})
}

func TestSpaceIsReported(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, _ string) {
		if space, err := root.Space(t.Context()); err != nil || space.Total == 0 || space.Free > space.Total {
			t.Errorf("there is %+v, %v", space, err)
		}
	})
}

func TestATreeIsRemovedWithAllThatItHolds(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		volume := filepath.Join(folder, "volume")
		must(t, os.MkdirAll(filepath.Join(volume, strings.Repeat("deep/", 80)), 0o755))
		must(t, os.Mkdir(filepath.Join(volume, "full"), 0o755))
		for i := range 1500 {
			must(t, os.WriteFile(filepath.Join(volume, "full", fmt.Sprintf("file-%d", i)), nil, 0o600))
		}
		must(t,
			os.Symlink("../..", filepath.Join(volume, "up")),
			os.Symlink(filepath.Join(folder, "..", "canary"), filepath.Join(volume, "canary")),
			os.WriteFile(filepath.Join(volume, ".moved-1"), nil, 0o600),
			unix.Mkfifo(filepath.Join(volume, "fifo"), 0o600),
			os.Mkdir(filepath.Join(folder, "neighbour"), 0o755))

		must(t, tree.RemoveTree(t.Context(), root, "volume", time.Now().Add(time.Hour)))

		left, err := os.ReadDir(folder)
		if len(left) != 1 || left[0].Name() != "neighbour" || err != nil {
			t.Errorf("there is %v left, %v", left, err)
		}
		must(t, tree.RemoveTree(t.Context(), root, "volume", time.Now().Add(time.Hour)))
	})
}

func TestRemovingATreeNeedsADirectory(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		must(t, os.Symlink("..", filepath.Join(folder, "volume")))
		if err := tree.RemoveTree(t.Context(), root, "volume", time.Now().Add(time.Hour)); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("removing what a link leads to: %v", err)
		}
	})
}

func TestRemovingStopsAtAMount(t *testing.T) {
	folder := besideCanary(t)
	mounttest.Tmpfs(t, folder)
	disk := filepath.Join(folder, "volume", "disk")
	must(t, os.MkdirAll(disk, 0o755))
	mounttest.Tmpfs(t, disk)
	must(t, os.WriteFile(filepath.Join(disk, "data"), nil, 0o600))
	root, err := mounted.Open(folder)
	must(t, err)
	defer root.Close()

	err = tree.RemoveTree(t.Context(), root, "volume", time.Now().Add(time.Hour))

	if !errors.Is(err, tree.ErrOtherFileSystem) {
		t.Errorf("removing ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(disk, "data")); err != nil {
		t.Errorf("what lies on the mounted disk: %v", err)
	}
}

func TestAnEmptyMountPointIsNoShare(t *testing.T) {
	if _, err := mounted.Open(t.TempDir()); !errors.Is(err, mounted.ErrNotMounted) {
		t.Errorf("opening a directory where nothing is mounted: %v", err)
	}
}

// counted counts the directories that are open.
type counted struct {
	tree.Dir
	open, most *int
}

func (c counted) Open(ctx context.Context, name string) (tree.Dir, error) {
	opened, err := c.Dir.Open(ctx, name)
	if err == nil {
		*c.open++
		*c.most = max(*c.most, *c.open)
	}
	return counted{opened, c.open, c.most}, err
}

func (c counted) Close() error {
	*c.open--
	return c.Dir.Close()
}

func (c counted) Rename(ctx context.Context, name string, to tree.Dir, newName string) error {
	inner, _ := to.(counted)
	return c.Dir.Rename(ctx, name, inner.Dir, newName)
}

func TestRemovingADeepTreeHoldsFewDirectoriesOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		must(t, os.MkdirAll(filepath.Join(folder, "volume", strings.Repeat("deep/", 300)), 0o755))
		open, most := 0, 0
		must(t, tree.RemoveTree(t.Context(), counted{root, &open, &most}, "volume", time.Now().Add(time.Hour)))
		if open != 0 || most > 70 {
			t.Errorf("%d directories were open at once, and %d still are", most, open)
		}
		if there, err := tree.Exists(t.Context(), root, "volume"); there || err != nil {
			t.Errorf("it is still there: %v", err)
		}
	})
}
