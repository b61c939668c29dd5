package loopdev_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/devicetest"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func TestTheImageOfADeviceIsFound(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	loop := devicetest.Attach(t, image, loopdev.ForBlock)
	found, err := loopdev.ImageOf(loop.Path())
	if err != nil || found == nil {
		t.Fatal(found, err)
	}
	defer found.Close()
	if !isSame(t, image, found) {
		t.Errorf("%s is another file", found.Name())
	}
}

func TestAFileThatHasTheNameOfADevicesImageByNowIsRefused(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	loop := devicetest.Attach(t, image, loopdev.ForBlock)
	name, err := os.Readlink(device.PathOf(image))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	// What lost its name is called so by the kernel.
	if err := os.WriteFile(name+" (deleted)", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := loopdev.ImageOf(loop.Path()); found != nil || err == nil || !strings.Contains(err.Error(), "losetup --detach "+loop.Path()) {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestNoImageBacksWhatIsNoDevice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, "/dev/null"} {
		if found, err := loopdev.ImageOf(path); found != nil || err != nil {
			t.Errorf("%s: %v, %v", path, found, err)
		}
	}
}

func isSame(t *testing.T, a, b *os.File) bool {
	t.Helper()
	one, err := a.Stat()
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(one, other)
}
