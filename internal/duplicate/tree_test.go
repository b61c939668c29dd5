package duplicate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/duplicate"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func TestACopyOfATreeHoldsWhatTheTreeHolds(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		from, to := makeDir(t, dir, "from"), makeDir(t, dir, "to")
		plant(t, from)
		if err := duplicate.Tree(t.Context(), mounttest.Open(t, to), mounttest.Open(t, from)); err != nil {
			t.Fatal(err)
		}
		want, got := survey(t, from), survey(t, to)
		for path, wanted := range want {
			if got[path] != wanted {
				t.Errorf("%s is %s, and was %s", path, got[path], wanted)
			}
		}
		if len(got) != len(want) {
			t.Errorf("there are %d names, and were %d", len(got), len(want))
		}
		mustEqual(t, filepath.Join(from, "sub", "large"), filepath.Join(to, "sub", "large"))
		if used := blocks(t, mounttest.Open(t, filepath.Join(to, "sub", "large"))); used > mebibyte {
			t.Errorf("the file with a hole takes %d bytes", used)
		}
	})
}

// plant makes one of each kind.
func plant(t *testing.T, dir string) {
	t.Helper()
	sub := makeDir(t, dir, "sub")
	write(t, filepath.Join(sub, "large"), 30*mebibyte, map[int64]string{20 * mebibyte: "data"})
	write(t, filepath.Join(dir, "program"), 0, map[int64]string{0: "#!"})
	outside := write(t, filepath.Join(t.TempDir(), "outside"), 0, map[int64]string{0: "secret"})
	acl := []byte("\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x07\x00\x39\x30\x00\x00\x04\x00\x04\x00\xff\xff\xff\xff\x10\x00\x07\x00\xff\xff\xff\xff\x20\x00\x04\x00\xff\xff\xff\xff")
	old := []unix.Timespec{{Sec: 1e9, Nsec: 5}, {Sec: 1e9, Nsec: 7}}
	err := errors.Join(
		os.Link(filepath.Join(dir, "program"), filepath.Join(sub, "same")),
		os.Symlink("sub/large", filepath.Join(dir, "inside")),
		os.Symlink(outside.Name(), filepath.Join(dir, "outside")),
		os.Lchown(filepath.Join(dir, "inside"), 11, 12),
		os.Chown(filepath.Join(dir, "program"), 12, 34),
		os.Chmod(filepath.Join(dir, "program"), 0o755|os.ModeSetuid|os.ModeSetgid),
		os.Chmod(sub, 0o770|os.ModeSticky),
		unix.Setxattr(filepath.Join(dir, "program"), "user.note", []byte("kept"), 0),
		unix.Setxattr(filepath.Join(sub, "large"), "system.posix_acl_access", acl, 0),
		unix.Lsetxattr(filepath.Join(dir, "inside"), "trusted.note", []byte("kept"), 0),
		unix.Mknod(filepath.Join(dir, "pipe"), unix.S_IFIFO|0o620, 0),
		unix.Mknod(filepath.Join(dir, "socket"), unix.S_IFSOCK|0o600, 0),
		unix.Mknod(filepath.Join(dir, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
		unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, "inside"), old, unix.AT_SYMLINK_NOFOLLOW),
		unix.UtimesNanoAt(unix.AT_FDCWD, sub, old, 0),
		os.Chmod(dir, 0o777|os.ModeSetgid), os.Chown(dir, 0, 2000),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// survey describes each name in a tree.
func survey(t *testing.T, dir string) map[string]string {
	t.Helper()
	found, names := map[string]string{}, map[uint64]string{}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		var stat unix.Stat_t
		if err := errors.Join(err, unix.Lstat(path, &stat)); err != nil {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if first, known := names[stat.Ino]; known {
			found[below] = "the same as " + first
			return err
		}
		names[stat.Ino] = below
		target, _ := os.Readlink(path)
		found[below] = fmt.Sprintf("%o %d:%d %d %d %s %q %q", stat.Mode, stat.Uid, stat.Gid, stat.Rdev, stat.Mtim.Nano(), target,
			attributes(path, "user.note"), attributes(path, "trusted.note")+attributes(path, "system.posix_acl_access"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func attributes(path, name string) string {
	value := make([]byte, 1024)
	length, err := unix.Lgetxattr(path, name, value)
	if err != nil {
		return ""
	}
	return string(value[:length])
}

func TestATreeWithAMountInItIsNotCopied(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := t.TempDir()
	inside := makeDir(t, dir, "inside")
	if err := (mount.Kernel{}).Tmpfs(inside, mount.TmpfsOptions{Bytes: mebibyte, Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mount.UnmountBelow(mount.Kernel{}, inside) })
	if err := duplicate.Tree(t.Context(), mounttest.Open(t, t.TempDir()), mounttest.Open(t, dir)); !errors.Is(err, mount.ErrMounted) {
		t.Errorf("got %v", err)
	}
}

func TestATreeThatNestsDeeperThanFilesCanBeOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	at := dir
	for range 300 {
		at = makeDir(t, at, "d")
	}
	if err := duplicate.Tree(t.Context(), mounttest.Open(t, t.TempDir()), mounttest.Open(t, dir)); !errors.Is(err, duplicate.ErrTooDeep) {
		t.Errorf("got %v", err)
	}
}

func TestADiskThatIsFullEndsTheCopy(t *testing.T) {
	mounttest.NeedsRoot(t)
	small, from := makeDir(t, t.TempDir(), "small"), t.TempDir()
	if err := (mount.Kernel{}).Tmpfs(small, mount.TmpfsOptions{Bytes: mebibyte, Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mount.UnmountBelow(mount.Kernel{}, small) })
	write(t, filepath.Join(from, "large"), 0, map[int64]string{0: strings.Repeat("x", 4*mebibyte)})
	if err := duplicate.Tree(t.Context(), mounttest.Open(t, small), mounttest.Open(t, from)); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
}

func TestAPipeNeverHoldsACopyUp(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	to, from := mounttest.Open(t, t.TempDir()), mounttest.Open(t, dir)
	go func() { done <- duplicate.Tree(t.Context(), to, from) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for a process at the other end")
	}
}

func makeDir(t *testing.T, parent, name string) string {
	t.Helper()
	path := filepath.Join(parent, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
