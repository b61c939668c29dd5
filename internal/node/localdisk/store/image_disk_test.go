package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// needsExt4 skips a test that can't make images, or is on a machine that can't
// attach them.
func needsExt4(t *testing.T) {
	t.Helper()
	mounttest.NeedsRoot(t)
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("NOT RUN: mkfs.ext4 is missing: install e2fsprogs")
	}
}

func realDir(t *testing.T) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// mountNew mounts a new file system of a type at a path until the test ends.
func mountNew(t *testing.T, path, fsType string, bytes int64) {
	t.Helper()
	mounttest.NeedsRoot(t)
	if _, err := exec.LookPath("mkfs." + fsType); err != nil {
		t.Skip("NOT RUN: mkfs." + fsType + " is missing: install e2fsprogs, xfsprogs and btrfs-progs")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(bytes); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), "mkfs."+fsType, "-q", file.Name()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	loop, err := loopdev.Attach(t.Context(), file, loopdev.ForFileSystem)
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	if err := errors.Join(os.Mkdir(path, 0o700), unix.Mount(loop.Path(), path, fsType, 0, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := (mount.Kernel{}).Unmount(path); err != nil {
			t.Error(err)
		}
	})
}

// writeImage leaves a file of some bytes that aren't zeros.
func writeImage(folder, name string, bytes int) error {
	path := filepath.Join(folder, name)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(strings.Repeat("x", bytes)), 0o600))
}

// awaitEntry waits until something is being made in a folder.
func awaitEntry(t *testing.T, folder string) {
	t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if entries, _ := os.ReadDir(folder); len(entries) > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("nothing is being made")
		}
	}
}

// mustBeWhole fails unless a volume's image is all there is in its folder, and has
// its size, its room and a file system without faults.
func mustBeWhole(t *testing.T, volume layout.Volume) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(volume.Path, ".new-"+volume.Name)); !os.IsNotExist(err) {
		t.Errorf("its draft is left (%v)", err)
	}
	image, err := os.Open(volume.ImagePath())
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if info, err := image.Stat(); err != nil || info.Size() != volume.Bytes {
		t.Errorf("it has %d bytes (%v)", info.Size(), err)
	}
	if whole, err := loopdev.IsAllocated(image); err != nil || !whole {
		t.Errorf("the disk keeps no room for it (%v)", err)
	}
	if output, err := exec.Command("fsck.ext4", "-fn", volume.ImagePath()).CombinedOutput(); err != nil {
		t.Errorf("its file system: %v: %s", err, output)
	}
}

// mustHoldNothing fails if there is anything in a folder of volumes.
func mustHoldNothing(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if path != folder && filepath.Base(path) != ".deleting" {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
