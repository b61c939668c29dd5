package mount_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// newShared mounts a file system as hosts have theirs: what is mounted in it shows in
// all its bind mounts, and what is unmounted goes from all of them.
func newShared(t *testing.T) string {
	t.Helper()
	dir := mounttest.TempDir(t)
	mountTmpfs(t, dir)
	if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mountTmpfs mounts a file system in memory until the test ends.
func mountTmpfs(t *testing.T, target string) {
	t.Helper()
	if err := kernel.Tmpfs(target, mount.TmpfsOptions{Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mount.UnmountBelow(kernel, target); err != nil {
			t.Error(err)
		}
	})
}

func TestATreeIsBoundWithWhatIsMountedInIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := newShared(t)
	source, target := mounttest.MakeDir(t, dir, "source"), mounttest.MakeDir(t, dir, "target")
	inner := mounttest.MakeDir(t, source, "inner")
	mountTmpfs(t, inner)
	mounttest.WriteFile(t, inner, "file", "hello")

	if err := kernel.BindTree(mounttest.Open(t, source), target, mount.TreeOptions{Access: mount.ReadOnly, Except: "/nowhere"}); err != nil {
		t.Fatal(err)
	}

	mounttest.MustHold(t, filepath.Join(target, "inner", "file"), "hello")
	for _, written := range []string{target, filepath.Join(target, "inner")} {
		if err := os.WriteFile(filepath.Join(written, "new"), nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("writing to %s gave %v", written, err)
		}
	}
	mounttest.WriteFile(t, inner, "new", "the source can be written")
}

func TestWhatIsUnmountedAtABindMountStaysAtItsSource(t *testing.T) {
	mounttest.NeedsRoot(t)
	ways := map[string]func(*os.File, string, mount.Access) error{"alone": kernel.Bind, "with what is mounted in it": bindTree}
	for name, bind := range ways {
		t.Run(name, func(t *testing.T) {
			dir := newShared(t)
			source, target := mounttest.MakeDir(t, dir, "source"), mounttest.MakeDir(t, dir, "target")
			inner, later := mounttest.MakeDir(t, source, "inner"), mounttest.MakeDir(t, source, "later")
			mountTmpfs(t, inner)
			if err := bind(mounttest.Open(t, source), target, mount.ReadWrite); err != nil {
				t.Fatal(err)
			}
			mountTmpfs(t, later)
			if mounttest.TableOf(t).IsMountPoint(filepath.Join(target, "later")) {
				t.Error("what was mounted at the source later shows at the bind mount")
			}

			if err := mount.UnmountBelow(kernel, target); err != nil {
				t.Fatal(err)
			}

			if table := mounttest.TableOf(t); !table.IsMountPoint(inner) || !table.IsMountPoint(later) {
				t.Errorf("the source's own mounts are gone: %+v", table.Below(source))
			}
		})
	}
}

func bindTree(source *os.File, target string, access mount.Access) error {
	return kernel.BindTree(source, target, mount.TreeOptions{Access: access, Except: "/nowhere"})
}

func TestATreeIsBoundWithoutWhatIsMountedInTheFolderThatItIsBoundIn(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := newShared(t)
	folder, other := mounttest.MakeDir(t, dir, "folder"), mounttest.MakeDir(t, dir, "other")
	mountTmpfs(t, other)
	first, second := mounttest.MakeDir(t, folder, "first"), mounttest.MakeDir(t, folder, "second")
	before := len(mounttest.TableOf(t))

	for _, target := range []string{first, second, first} {
		if err := kernel.BindTree(mounttest.Open(t, dir), target, mount.TreeOptions{Except: folder}); err != nil {
			t.Fatal(err)
		}
	}

	mounttest.WriteFile(t, other, "file", "hello")
	mounttest.MustHold(t, filepath.Join(second, "other", "file"), "hello")
	// Of each, the top and what is mounted at other.
	if after := len(mounttest.TableOf(t)); after != before+6 {
		t.Errorf("%d mounts became %d", before, after)
	}
	if table := mounttest.TableOf(t); len(table.Below(filepath.Join(second, "folder"))) > 0 || !table.IsMountPoint(other) {
		t.Errorf("mounted: %+v", table.Below(dir))
	}
}

func TestATreeMayBeAllThatThereIs(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	mountTmpfs(t, mounttest.MakeDir(t, dir, "another pod"))
	target := mounttest.MakeDir(t, dir, "pod")

	if err := kernel.BindTree(mounttest.Open(t, "/"), target, mount.TreeOptions{Access: mount.ReadOnly, Except: dir}); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := mount.UnmountBelow(kernel, dir); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(filepath.Join(target, "proc", "self", "mountinfo")); err != nil {
		t.Error(err)
	}
	if below := mounttest.TableOf(t).Below(filepath.Join(target, dir)); len(below) > 0 {
		t.Errorf("carried over: %+v", below)
	}
	if err := mount.UnmountBelow(kernel, target); err != nil {
		t.Error(err)
	}
	if !mounttest.TableOf(t).IsMountPoint("/proc") {
		t.Error("/proc was taken away from its place")
	}
}
