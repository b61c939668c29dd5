package apidata_test

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func mustBeOf(t *testing.T, path string, mode fs.FileMode, group uint32) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t).Gid; info.Mode() != mode || got != group {
		t.Errorf("%s is %v of group %d", path, info.Mode(), got)
	}
}

// mustHoldNothing asserts that nothing lies in a directory.
func mustHoldNothing(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("in %s lie %v (%v)", dir, entries, err)
	}
}

//proves:secret/shown
func TestSecretsAreInMemoryAlone(t *testing.T) {
	v := newVolume(t, true)
	v.publish(t, "secret")
	table, err := mount.Kernel{}.Table()
	if err != nil {
		t.Fatal(err)
	}
	if at, mounted := table.At(v.dir); !mounted || at.FSType != "tmpfs" {
		t.Errorf("mounted: %+v", at)
	}
	if err := (mount.Kernel{}).Unmount(v.dir); err != nil {
		t.Fatal(err)
	}
	mustHoldNothing(t, v.dir)
}

func TestAVolumeOnDiskIsNotMounted(t *testing.T) {
	v := newVolume(t, false)
	v.publish(t, "public")
	table, err := mount.Kernel{}.Table()
	if err != nil || table.IsMountPoint(v.dir) {
		t.Errorf("mounted: %+v (%v)", table.Below(v.dir), err)
	}
}

func TestAVolumeUnmountedByHandIsMountedAgainAndNoSecretIsWrittenToDisk(t *testing.T) {
	needsDisk(t)
	v := newVolume(t, true)
	v.publish(t, "first")
	if err := (mount.Kernel{}).Unmount(v.dir); err != nil {
		t.Fatal(err)
	}
	v.mustBePublished(t, false)
	err := v.Refresh(t.Context(), showing("second"), v.dir)
	if err == nil || !strings.Contains(err.Error(), "isn't a file system in memory") {
		t.Errorf("got %v", err)
	}
	mustHoldNothing(t, v.dir)
	v.publish(t, "second")
	v.mustShow(t, "second")
}

//proves:secret/shown
func TestWhereSomethingElseIsMountedNothingSecretIsWritten(t *testing.T) {
	needsDisk(t)
	v, disk := newVolume(t, true), t.TempDir()
	if err := os.Mkdir(v.dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := (mount.Kernel{}).Bind(mounttest.Open(t, disk), v.dir, mount.ReadWrite); err != nil {
		t.Fatal(err)
	}
	v.mustBePublished(t, false)
	if err := v.Publish(t.Context(), showing("secret"), v.dir); err == nil {
		t.Error("it isn't an error")
	}
	mustHoldNothing(t, disk)
	if err := v.Unpublish(t.Context(), v.dir); err != nil {
		t.Error(err)
	}
}

func TestWhatLiesOnDiskInPlaceOfMemoryIsNotPublished(t *testing.T) {
	onDisk, v := newVolume(t, false), newVolume(t, true)
	onDisk.publish(t, "left on disk")
	v.dir = onDisk.dir
	v.mustBePublished(t, false)
	v.publish(t, "secret")
	v.mustBePublished(t, true)
	v.mustShow(t, "secret")
}

// needsDisk skips a test where the folder for tests is in memory itself: what is written
// to it isn't written to a disk.
func needsDisk(t *testing.T) {
	t.Helper()
	var system unix.Statfs_t
	if err := unix.Statfs(t.TempDir(), &system); err != nil {
		t.Fatal(err)
	}
	if system.Type == unix.TMPFS_MAGIC {
		t.Skip("NOT RUN: needs a folder for tests that is on disk")
	}
}
