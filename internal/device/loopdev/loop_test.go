package loopdev_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/devicetest"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func TestAnImageAppearsAsADeviceOfItsSize(t *testing.T) {
	mounttest.NeedsRoot(t)
	const size = 3*devicetest.Mebibyte + device.SectorBytes
	for name, use := range map[string]loopdev.Use{"for a file system": loopdev.ForFileSystem, "for a pod": loopdev.ForBlock} {
		t.Run(name, func(t *testing.T) {
			loop := devicetest.Attach(t, devicetest.NewImage(t, size), use)
			shown, err := os.OpenFile(loop.Path(), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer shown.Close()
			if end, err := shown.Seek(0, 2); end != size {
				t.Errorf("it has %d bytes, not %d (%v)", end, size, err)
			}
			if _, err := shown.WriteString("beyond"); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("writing beyond the end gave %v", err)
			}
		})
	}
}

func TestADeviceForAFileSystemGoesWithItsLastUser(t *testing.T) {
	mounttest.NeedsRoot(t)
	devicetest.Needs(t, "mkfs.ext4")
	image := devicetest.NewImage(t, 16*devicetest.Mebibyte)
	if err := devicetest.FileSystems.Format(t.Context(), device.PathOf(image), "ext4", 16*devicetest.Mebibyte); err != nil {
		t.Fatal(err)
	}
	loop := devicetest.Attach(t, image, loopdev.ForFileSystem)
	target := devicetest.MountAt(t, loop.Path(), "ext4")
	loop.Close()
	again := devicetest.Find(t, image)
	if again == nil || again.Path() != loop.Path() || again.Device() != loop.Device() {
		t.Fatalf("it isn't found while it is mounted: %v", again)
	}
	again.Close()
	if err := unix.Unmount(target, 0); err != nil {
		t.Fatal(err)
	}
	devicetest.MustBeDetached(t, image)
}

func TestADeviceForAFileSystemDetachesIfItIsNeverMounted(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	devicetest.Attach(t, image, loopdev.ForFileSystem).Close()
	devicetest.MustBeDetached(t, image)
}

func TestADeviceForAPodStaysUntilItIsDetached(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	devicetest.Attach(t, image, loopdev.ForBlock).Close()
	loop := devicetest.Find(t, image)
	if loop == nil {
		t.Fatal("it went with its last user")
	}
	if err := loop.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if devicetest.Find(t, image) != nil {
		t.Error("it is there still")
	}
}

func TestAnOpenDeviceIsNotDetached(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	loop := devicetest.Attach(t, image, loopdev.ForBlock)
	user, err := os.Open(loop.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := loop.Detach(ctx); !errors.Is(err, device.ErrInUse) {
		t.Errorf("got %v", err)
	}
	user.Close()
	devicetest.MustBeDetached(t, image)
}

func TestAnImageIsAttachedOnceHoweverManyAskForIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	var group sync.WaitGroup
	var paths sync.Map
	for range 8 {
		group.Go(func() {
			loop, err := loopdev.Attach(t.Context(), image, loopdev.ForBlock)
			if err != nil {
				t.Error(err)
				return
			}
			paths.Store(loop.Path(), true)
			loop.Close()
		})
	}
	group.Wait()
	count := 0
	paths.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("it has %d devices", count)
	}
	devicetest.Attach(t, image, loopdev.ForBlock)
}

func TestManyImagesThatAreAttachedAtOnceGetADeviceEach(t *testing.T) {
	mounttest.NeedsRoot(t)
	var group sync.WaitGroup
	for range 12 {
		image := devicetest.NewImage(t, devicetest.Mebibyte)
		group.Go(func() {
			for range 5 {
				loop, err := loopdev.Attach(t.Context(), image, loopdev.ForFileSystem)
				if err != nil {
					t.Error(err)
					return
				}
				again, err := loopdev.Find(image)
				if err != nil || again == nil || again.Path() != loop.Path() {
					t.Errorf("%s is not found: %v", loop.Path(), err)
				}
				if again != nil {
					again.Close()
				}
				loop.Close()
			}
		})
	}
	group.Wait()
}

func TestAnImageIsFoundByItsInodeAndNotByItsPath(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	loop := devicetest.Attach(t, image, loopdev.ForBlock)
	moved := filepath.Join(filepath.Dir(image.Name()), "moved")
	if err := os.Rename(image.Name(), moved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(image.Name(), make([]byte, devicetest.Mebibyte), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(image.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	if found := devicetest.Find(t, other); found != nil {
		t.Errorf("%s is taken for that of another file", found.Path())
	}
	// A file that is open with O_PATH is enough.
	byPath, err := os.OpenFile(moved, unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer byPath.Close()
	again, err := loopdev.Attach(t.Context(), byPath, loopdev.ForBlock)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Path() != loop.Path() {
		t.Errorf("it got %s beside %s", again.Path(), loop.Path())
	}
}

func TestAnImageThatGrewIsAttachedAnewWithItsSize(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	loop := devicetest.Attach(t, image, loopdev.ForBlock)
	shown, err := os.Open(loop.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Close()
	attachAnew := func() error {
		again, err := loopdev.Attach(t.Context(), image, loopdev.ForBlock)
		if err == nil {
			again.Close()
		}
		return err
	}
	for size, resize := range map[int64]func() error{2 * devicetest.Mebibyte: loop.Resize, 3 * devicetest.Mebibyte: attachAnew} {
		if err := image.Truncate(size); err != nil {
			t.Fatal(err)
		}
		if err := resize(); err != nil {
			t.Fatal(err)
		}
		if end, err := shown.Seek(0, 2); end != size {
			t.Errorf("it has %d bytes, not %d (%v)", end, size, err)
		}
	}
}

func TestADeviceHasItsLatestUse(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	loop := devicetest.Attach(t, image, loopdev.ForFileSystem)
	devicetest.Attach(t, image, loopdev.ForBlock).Close()
	loop.Close()
	if loop = devicetest.Find(t, image); loop == nil {
		t.Fatal("it went though it was to stay")
	}
	devicetest.Attach(t, image, loopdev.ForFileSystem).Close()
	loop.Close()
	devicetest.MustBeDetached(t, image)
}

func TestAnImageThatIsBeingRemovedIsNotAttached(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	held, err := loopdev.Reserve(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := loopdev.Attach(t.Context(), image, loopdev.ForBlock)
		ended <- err
	}()
	if err := os.Remove(image.Name()); err != nil {
		t.Fatal(err)
	}
	held.Close()
	if err := <-ended; !errors.Is(err, device.ErrGone) {
		t.Errorf("got %v", err)
	}
}

func TestAnImageThatIsAttachedIsNotRemoved(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	loop := devicetest.Attach(t, image, loopdev.ForFileSystem)
	if _, err := loopdev.Reserve(t.Context(), image); !errors.Is(err, device.ErrAttached) || !strings.Contains(err.Error(), loop.Path()) {
		t.Errorf("got %v", err)
	}
	loop.Close()
	devicetest.MustBeDetached(t, image)
	held, err := loopdev.Reserve(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	held.Close()
}

func TestADeviceThatWasLeftReadOnlyIsWritableForItsNextImage(t *testing.T) {
	mounttest.NeedsRoot(t)
	loop := devicetest.Attach(t, devicetest.NewImage(t, devicetest.Mebibyte), loopdev.ForBlock)
	if err := errors.Join(loop.SetReadOnly(true), loop.Detach(t.Context())); err != nil {
		t.Fatal(err)
	}
	next := devicetest.Attach(t, devicetest.NewImage(t, devicetest.Mebibyte), loopdev.ForBlock)
	if next.Path() != loop.Path() {
		t.Skip("NOT RUN: another program took the device")
	}
	if err := os.WriteFile(next.Path(), []byte("written"), 0o600); err != nil {
		t.Error(err)
	}
}
