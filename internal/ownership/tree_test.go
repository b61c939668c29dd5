package ownership_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/ownership"
)

const (
	someGroup = 4711
	// immutable is FS_IMMUTABLE_FL.
	immutable = 0x10
)

func ignoreProgress(int64) {}

// give gives a tree away, which must work.
func give(t *testing.T, path string, group ownership.Group) {
	t.Helper()
	if refused, err := group.Apply(t.Context(), mounttest.Open(t, path), ignoreProgress); err != nil || refused > 0 {
		t.Fatalf("%d refused, %v", refused, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// file makes a file with a mode.
func file(t *testing.T, mode uint32, path ...string) string {
	t.Helper()
	at := filepath.Join(path...)
	must(t, os.WriteFile(at, nil, 0o600))
	must(t, unix.Chmod(at, mode))
	return at
}

func folder(t *testing.T, mode uint32, path ...string) string {
	t.Helper()
	at := filepath.Join(path...)
	must(t, os.MkdirAll(at, 0o700))
	must(t, unix.Chmod(at, mode))
	return at
}

func look(t *testing.T, path string) unix.Stat_t {
	t.Helper()
	var stat unix.Stat_t
	must(t, unix.Lstat(path, &stat))
	return stat
}

func mustBe(t *testing.T, path string, group, mode uint32) {
	t.Helper()
	stat := look(t, path)
	if stat.Gid != group || stat.Mode&0o7777 != mode {
		t.Errorf("%s has group %d and mode %o, want %d and %o", path, stat.Gid, stat.Mode&0o7777, group, mode)
	}
}

//proves:every/fsGroup
func TestAWholeTreeGetsTheGroup(t *testing.T) {
	mounttest.NeedsRoot(t)
	top := folder(t, 0o700, t.TempDir(), "top")
	outside := file(t, 0o600, t.TempDir(), "outside")
	deep := folder(t, 0o1750, top, "deep")
	plain, run, program := file(t, 0o600, deep, "plain"), file(t, 0o700, top, "run"), file(t, 0o6755, top, "program")
	link, pipe, device := filepath.Join(top, "link"), filepath.Join(top, "pipe"), filepath.Join(top, "device")
	must(t, errors.Join(os.Symlink(outside, link), unix.Mkfifo(pipe, 0o600), unix.Mknod(device, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))))
	give(t, top, ownership.Group{ID: someGroup})
	mustBe(t, top, someGroup, 0o2770)
	mustBe(t, deep, someGroup, 0o3770)
	mustBe(t, plain, someGroup, 0o660)
	mustBe(t, run, someGroup, 0o770)
	mustBe(t, program, someGroup, 0o775)
	mustBe(t, pipe, someGroup, 0o660)
	mustBe(t, link, someGroup, 0o777)
	mustBe(t, device, 0, 0o600)
	mustBe(t, outside, 0, 0o600)
}

func TestAGroupThatOnlyReadsGetsNoRightToWrite(t *testing.T) {
	mounttest.NeedsRoot(t)
	top := folder(t, 0o500, t.TempDir(), "top")
	plain := file(t, 0o400, top, "plain")
	give(t, top, ownership.Group{ID: someGroup, Access: mount.ReadOnly})
	mustBe(t, top, someGroup, 0o2550)
	mustBe(t, plain, someGroup, 0o440)
}

//proves:every/fsGroup
func TestATreeWhoseTopIsRightIsLeftAloneIfThePodSaysSo(t *testing.T) {
	mounttest.NeedsRoot(t)
	top := folder(t, 0o700, t.TempDir(), "top")
	once := ownership.Group{ID: someGroup, OnMismatch: true}
	give(t, top, once)
	late := file(t, 0o600, top, "late")
	must(t, os.Lchown(late, 0, 0))
	give(t, top, once)
	mustBe(t, late, 0, 0o600)
	for name, spoil := range map[string]func() error{
		"its group":  func() error { return os.Lchown(top, 0, 0) },
		"its mode":   func() error { return unix.Chmod(top, 0o2700) },
		"its setgid": func() error { return unix.Chmod(top, 0o770) },
	} {
		must(t, errors.Join(os.Lchown(late, 0, 0), spoil()))
		give(t, top, once)
		if look(t, late).Gid != someGroup {
			t.Errorf("%s was wrong, and the tree wasn't changed", name)
		}
	}
	must(t, os.Lchown(late, 0, 0))
	give(t, top, ownership.Group{ID: someGroup})
	mustBe(t, late, someGroup, 0o660)
}

// The next walk notices an interrupted one, whichever group that is for.
//
//proves:every/fsGroup
func TestATreeThatWasChangedHalfWayIsChangedAgain(t *testing.T) {
	mounttest.NeedsRoot(t)
	for name, next := range map[string]int{"to the same group": 2, "to the group that it had before": someGroup} {
		t.Run(name, func(t *testing.T) {
			top := folder(t, 0o700, t.TempDir(), "top")
			plain := file(t, 0o600, top, "plain")
			give(t, top, ownership.Group{ID: someGroup})
			ctx, cancel := context.WithCancel(t.Context())
			_, err := ownership.Group{ID: 2}.Apply(ctx, mounttest.Open(t, top), func(int64) { cancel() })
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			mustBe(t, plain, 2, 0o660)
			give(t, top, ownership.Group{ID: next, OnMismatch: true})
			mustBe(t, plain, uint32(next), 0o660)
			mustBe(t, top, uint32(next), 0o2770)
		})
	}
}

func TestMountsInATreeAreLeftAlone(t *testing.T) {
	mounttest.NeedsRoot(t)
	top := folder(t, 0o700, t.TempDir(), "top")
	other, same := folder(t, 0o700, top, "other"), folder(t, 0o700, top, "same")
	mounttest.Tmpfs(t, other)
	elsewhere := t.TempDir()
	kept, bound := file(t, 0o600, other, "kept"), file(t, 0o600, elsewhere, "kept")
	must(t, mount.Kernel{}.Bind(mounttest.Open(t, elsewhere), same, mount.ReadWrite))
	t.Cleanup(func() { _ = unix.Unmount(same, unix.MNT_DETACH) })
	give(t, top, ownership.Group{ID: someGroup})
	mustBe(t, kept, 0, 0o600)
	mustBe(t, bound, 0, 0o600)
	mustBe(t, other, 0, 0o755)
}

func TestATreeThatCannotBeWrittenIsLeftAlone(t *testing.T) {
	mounttest.NeedsRoot(t)
	source, at := t.TempDir(), t.TempDir()
	plain := file(t, 0o600, source, "plain")
	must(t, mount.Kernel{}.Bind(mounttest.Open(t, source), at, mount.ReadOnly))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	give(t, at, ownership.Group{ID: someGroup})
	mustBe(t, plain, 0, 0o600)
}

func TestATreeIsChangedAsDeepAsAPathIsLong(t *testing.T) {
	mounttest.NeedsRoot(t)
	top := folder(t, 0o700, t.TempDir(), "top")
	reached, beyond := nest(t, top, 1800), nest(t, folder(t, 0o700, top, "beyond"), 3000)
	refused, err := ownership.Group{ID: someGroup}.Apply(t.Context(), mounttest.Open(t, top), ignoreProgress)
	if err != nil || refused != 1 {
		t.Errorf("%d refused, %v", refused, err)
	}
	var near, far unix.Stat_t
	must(t, errors.Join(unix.Fstat(int(reached.Fd()), &near), unix.Fstat(int(beyond.Fd()), &far)))
	if near.Gid != someGroup || far.Gid != 0 {
		t.Errorf("the groups are %d and %d", near.Gid, far.Gid)
	}
	must(t, filetree.RemoveTree(t.Context(), mounttest.Open(t, filepath.Dir(top)), "top"))
}

// nest makes directories in each other, and returns the innermost.
func nest(t *testing.T, path string, depth int) *os.File {
	t.Helper()
	at, err := os.Open(path)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(int(at.Fd()), "d", 0o700))
		fd, err := unix.Openat(int(at.Fd()), "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, errors.Join(err, at.Close()))
		at = os.NewFile(uintptr(fd), "d")
	}
	t.Cleanup(func() { at.Close() })
	return at
}

func TestFilesThatTheKernelKeepsAreCounted(t *testing.T) {
	mounttest.NeedsRoot(t)
	top := folder(t, 0o700, t.TempDir(), "top")
	kept, plain := file(t, 0o600, top, "kept"), file(t, 0o600, top, "plain")
	setFlags(t, kept, immutable)
	refused, err := ownership.Group{ID: someGroup}.Apply(t.Context(), mounttest.Open(t, top), ignoreProgress)
	if err != nil || refused != 1 {
		t.Errorf("%d refused, %v", refused, err)
	}
	mustBe(t, kept, 0, 0o600)
	mustBe(t, plain, someGroup, 0o660)
	mustBe(t, top, someGroup, 0o2770)
}

// setFlags sets the inode flags of a file until the test ends.
func setFlags(t *testing.T, path string, flags int) {
	t.Helper()
	opened := mounttest.Open(t, path)
	if err := unix.IoctlSetPointerInt(int(opened.Fd()), unix.FS_IOC_SETFLAGS, flags); err != nil {
		t.Skipf("NOT RUN: this file system has no immutable files: %v", err)
	}
	t.Cleanup(func() { _ = unix.IoctlSetPointerInt(int(opened.Fd()), unix.FS_IOC_SETFLAGS, 0) })
}
