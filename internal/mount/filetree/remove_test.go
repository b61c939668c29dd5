package filetree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

func TestATreeIsRemovedWithAllThatItHolds(t *testing.T) {
	base := mounttest.TempDir(t)
	tree := mounttest.MakeDir(t, base, "tree")
	for i := range 3000 {
		mounttest.WriteFile(t, tree, fmt.Sprintf("file-%d", i), "")
	}
	mounttest.WriteFile(t, mounttest.MakeDir(t, tree, "a", "b", "c"), "\n \\file", "")
	if err := unix.Mkfifo(filepath.Join(tree, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chmod(mounttest.MakeDir(t, tree, "closed"), 0); err != nil {
			t.Fatal(err)
		}
	}

	for range 2 {
		if err := filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"); err != nil {
			t.Fatal(err)
		}
	}
	mounttest.MustNotExist(t, tree)
}

func TestSymlinksAreRemovedAndNotFollowed(t *testing.T) {
	base := mounttest.TempDir(t)
	canary := mounttest.WriteFile(t, mounttest.MakeDir(t, base, "precious"), "canary", "alive")
	tree := mounttest.MakeDir(t, base, "tree")
	for name, to := range map[string]string{"dir": "../precious", "file": "../precious/canary", "root": "/", "nowhere": "x"} {
		if err := os.Symlink(to, filepath.Join(tree, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"); err != nil {
		t.Fatal(err)
	}
	mounttest.MustNotExist(t, tree)
	mounttest.MustHold(t, canary, "alive")
}

func TestASymlinkInPlaceOfTheTreeIsAnError(t *testing.T) {
	base := mounttest.TempDir(t)
	canary := mounttest.WriteFile(t, mounttest.MakeDir(t, base, "precious"), "canary", "alive")
	if err := os.Symlink("precious", filepath.Join(base, "tree")); err != nil {
		t.Fatal(err)
	}
	if err := filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"); !errors.Is(err, safepath.ErrOutside) {
		t.Errorf("got %v", err)
	}
	mounttest.MustHold(t, canary, "alive")
}

func TestAFileInPlaceOfTheTreeIsAnError(t *testing.T) {
	base := mounttest.TempDir(t)
	file := mounttest.WriteFile(t, base, "tree", "kept")
	if err := filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("got %v", err)
	}
	mounttest.MustHold(t, file, "kept")
}

func TestATreeWithAMountInsideStaysAsItIs(t *testing.T) {
	mounttest.NeedsRoot(t)
	mounts := map[string]func(t *testing.T, at, precious string){
		"a bind mount of the same disk": func(t *testing.T, at, precious string) { mounttest.Bind(t, precious, at, mount.ReadWrite) },
		"a file system of its own": func(t *testing.T, at, _ string) {
			if err := (mount.Kernel{}).Tmpfs(at, mount.TmpfsOptions{Mode: 0o755}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { mounttest.Unmount(t, at) })
		},
	}
	for name, mountAt := range mounts {
		for _, where := range []string{"tree", "tree/a/mounted"} {
			t.Run(name+" at "+where, func(t *testing.T) {
				base := mounttest.TempDir(t)
				canary := mounttest.WriteFile(t, mounttest.MakeDir(t, base, "precious"), "canary", "alive")
				at := mounttest.MakeDir(t, base, where)
				mountAt(t, at, filepath.Dir(canary))
				kept := mounttest.WriteFile(t, filepath.Join(base, "tree"), "file", "kept")

				if err := filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"); !errors.Is(err, mount.ErrMounted) {
					t.Errorf("got %v", err)
				}
				mounttest.MustHold(t, canary, "alive")
				mounttest.MustHold(t, kept, "kept")
			})
		}
	}
}

func TestAMountedFileInTheTreeStays(t *testing.T) {
	mounttest.NeedsRoot(t)
	base := mounttest.TempDir(t)
	canary := mounttest.WriteFile(t, base, "canary", "alive")
	at := mounttest.WriteFile(t, mounttest.MakeDir(t, base, "tree"), "mounted", "")
	mounttest.Bind(t, canary, at, mount.ReadWrite)
	for _, err := range []error{
		filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"),
		filetree.EmptyLate(t.Context(), mounttest.Open(t, filepath.Join(base, "tree"))),
	} {
		if !errors.Is(err, mount.ErrMounted) {
			t.Errorf("got %v", err)
		}
	}
	mounttest.MustHold(t, canary, "alive")
}

func TestATreeDeeperThanFilesMayBeOpenIsRemoved(t *testing.T) {
	base := mounttest.TempDir(t)
	makeDeep(t, base, 3000)
	limitOpen(t, 512)

	if err := filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"); err != nil {
		t.Fatal(err)
	}
	mounttest.MustNotExist(t, filepath.Join(base, "tree"))
}

// A pod may give directories of its volume to other projects, between which the kernel moves
// none.
func TestATreeWhoseDirectoriesCannotBeMovedIsRemovedHoweverDeep(t *testing.T) {
	base := mounttest.TempDir(t)
	makeDeep(t, base, 3000)
	limitOpen(t, 128)

	other := mounttest.Refusal{First: unix.SYS_RENAMEAT2, Last: unix.SYS_RENAMEAT2, Errno: unix.EXDEV}
	err := other.Under(t, func() error { return filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree") })
	if err != nil {
		t.Fatal(err)
	}
	mounttest.MustNotExist(t, filepath.Join(base, "tree"))
}

func TestNamesThatATenantTookKeepNoTree(t *testing.T) {
	base := mounttest.TempDir(t)
	makeDeep(t, base, 200)
	for i := range 300 {
		mounttest.WriteFile(t, mounttest.MakeDir(t, base, "tree", fmt.Sprintf(".moved-%d", i)), "file", "")
	}
	if err := filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"); err != nil {
		t.Fatal(err)
	}
	mounttest.MustNotExist(t, filepath.Join(base, "tree"))
}

// A pod on btrfs may make snapshots of what is its own.
func TestASnapshotForReadingOnlyIsRemoved(t *testing.T) {
	mounttest.NeedsRoot(t)
	base := btrfs(t)
	mounttest.WriteFile(t, mounttest.MakeDir(t, base, "tree"), "plain", "")
	run(t, "btrfs", "subvolume", "create", filepath.Join(base, "tree", "volume"))
	mounttest.WriteFile(t, mounttest.MakeDir(t, base, "tree", "volume", "a"), "file", "")
	run(t, "btrfs", "subvolume", "snapshot", "-r", filepath.Join(base, "tree", "volume"), filepath.Join(base, "tree", "snapshot"))

	if err := filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"); err != nil {
		t.Fatal(err)
	}
	mounttest.MustNotExist(t, filepath.Join(base, "tree"))
}

// btrfs is where a file system of that kind is mounted until the test ends.
func btrfs(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"mkfs.btrfs", "btrfs"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: %s is not installed", program)
		}
	}
	image := filepath.Join(t.TempDir(), "image")
	mounttest.WriteFile(t, filepath.Dir(image), "image", "")
	if err := os.Truncate(image, 128<<20); err != nil {
		t.Fatal(err)
	}
	run(t, "mkfs.btrfs", "-q", image)
	loop, err := loopdev.Attach(t.Context(), mounttest.Open(t, image), loopdev.ForFileSystem)
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	at := mounttest.TempDir(t)
	if err := unix.Mount(loop.Path(), at, "btrfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mounttest.Unmount(t, at) })
	return at
}

func run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	if output, err := exec.Command(program, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, output)
	}
}

// limitOpen sets how many files this process may have open until the test ends.
func limitOpen(t *testing.T, files uint64) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	allowOpen(t, unix.Rlimit{Cur: files, Max: before.Max})
	t.Cleanup(func() { allowOpen(t, before) })
}

// allowOpen sets how many files this process may have open.
func allowOpen(t *testing.T, limit unix.Rlimit) {
	t.Helper()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Error(err)
	}
}

// makeDeep makes directories in each other, deeper than a path can be long.
func makeDeep(t *testing.T, base string, depth int) {
	t.Helper()
	name := strings.Repeat("d", 255)
	dir := mounttest.Open(t, mounttest.MakeDir(t, base, "tree"))
	for range depth {
		if err := unix.Mkdirat(int(dir.Fd()), name, 0o755); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		dir.Close()
		dir = os.NewFile(uintptr(fd), name)
	}
	dir.Close()
}

func TestARemovalThatWasInterruptedIsContinued(t *testing.T) {
	base := mounttest.TempDir(t)
	mounttest.WriteFile(t, mounttest.MakeDir(t, base, "tree", "a"), "file", "")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := filetree.RemoveTree(cancelled, mounttest.Open(t, base), "tree"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"); err != nil {
		t.Error(err)
	}
	mounttest.MustNotExist(t, filepath.Join(base, "tree"))
}

func TestARetiredDirectoryIsNotFoundByItsPath(t *testing.T) {
	base := mounttest.TempDir(t)
	mounttest.WriteFile(t, mounttest.MakeDir(t, base, "volume"), "file", "kept")
	for range 2 {
		deleting, err := filetree.Retire(mounttest.Open(t, base), "volume")
		if err != nil {
			t.Fatal(err)
		}
		mounttest.MustNotExist(t, filepath.Join(base, "volume"))
		mounttest.MustHold(t, filepath.Join(deleting.Name(), "volume", "file"), "kept")
		deleting.Close()
	}
}

func TestRetireNeverReplacesWhatWasRetiredBefore(t *testing.T) {
	base := mounttest.TempDir(t)
	kept := mounttest.WriteFile(t, mounttest.MakeDir(t, base, ".deleting", "volume"), "file", "kept")
	mounttest.MakeDir(t, base, "volume")
	if _, err := filetree.Retire(mounttest.Open(t, base), "volume"); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	mounttest.MustHold(t, kept, "kept")
}

func TestAMountMadeWhileATreeIsRemovedIsNotEntered(t *testing.T) {
	mounttest.NeedsRoot(t)
	base := mounttest.TempDir(t)
	canary := mounttest.WriteFile(t, mounttest.MakeDir(t, base, "precious"), "canary", "alive")
	mounttest.Bind(t, filepath.Dir(canary), mounttest.MakeDir(t, base, "tree", "a", "mounted"), mount.ReadWrite)
	if err := filetree.EmptyLate(t.Context(), mounttest.Open(t, filepath.Join(base, "tree"))); !errors.Is(err, mount.ErrMounted) {
		t.Errorf("got %v", err)
	}
	mounttest.MustHold(t, canary, "alive")
}
