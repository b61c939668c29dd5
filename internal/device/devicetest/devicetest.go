// Package devicetest has images, loop devices and disks for tests of packages that use
// them. Tests call it; nothing of it runs in a cluster.
package devicetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	utilexec "k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
)

// Mebibyte in bytes.
const Mebibyte = 1 << 20

// FileSystems run the programs of this machine.
var FileSystems = filesystem.NewFileSystems(utilexec.New())

// Needs skips a test without its programs, with a message.
func Needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: %s is missing: install e2fsprogs, xfsprogs and btrfs-progs", program)
		}
	}
}

// NewImage makes an allocated file on the machine's own disk, open until the test ends.
func NewImage(t *testing.T, bytes int64) *os.File {
	t.Helper()
	image, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { image.Close() })
	if err := loopdev.Allocate(image, bytes); err != nil {
		t.Fatal(err)
	}
	return image
}

// Attach attaches an image; what is left of it is detached when the test ends.
func Attach(t *testing.T, image *os.File, use loopdev.Use) *loopdev.Loop {
	t.Helper()
	loop, err := loopdev.Attach(t.Context(), image, use)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		loop.Close()
		left := Find(t, image)
		if left == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := left.Detach(ctx); err != nil {
			t.Error(err)
		}
	})
	return loop
}

// Find finds the loop device of an image; nil for none.
func Find(t *testing.T, image *os.File) *loopdev.Loop {
	t.Helper()
	loop, err := loopdev.Find(image)
	if err != nil {
		t.Fatal(err)
	}
	return loop
}

// MustBeDetached fails if an image has a loop device, or keeps one for long.
func MustBeDetached(t *testing.T, image *os.File) {
	t.Helper()
	deadline, tick := time.After(10*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		loop := Find(t, image)
		if loop == nil {
			return
		}
		loop.Close()
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s shows it still", loop.Path())
		}
	}
}

// MountAt mounts a device until the test ends, if it isn't unmounted before.
func MountAt(t *testing.T, path, fsType string) (target string) {
	t.Helper()
	target = t.TempDir()
	if err := unix.Mount(path, target, fsType, 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, 0) })
	return target
}
