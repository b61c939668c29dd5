package loopdev_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/devicetest"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func TestAttachingAReservedImageFailsInBoundedTime(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	held, err := loopdev.Reserve(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loopdev.Attach(t.Context(), image, loopdev.ForBlock); !errors.Is(err, device.ErrReserved) {
		t.Errorf("attaching it gave %v", err)
	}
	if _, err := loopdev.Reserve(t.Context(), image); !errors.Is(err, device.ErrReserved) {
		t.Errorf("reserving it again gave %v", err)
	}
	devicetest.MustBeDetached(t, image)
	held.Close()
	devicetest.Attach(t, image, loopdev.ForBlock)
}

func TestWhatIsWrittenToADeviceIsInItsImageOnceItIsFlushed(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	if err := loopdev.Flush(image); err != nil {
		t.Errorf("flushing one that isn't attached gave %v", err)
	}
	loop := devicetest.Attach(t, image, loopdev.ForBlock)
	if err := os.WriteFile(loop.Path(), []byte("written"), 0); err != nil {
		t.Fatal(err)
	}
	if err := loopdev.Flush(image); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 7)
	if _, err := image.ReadAt(content, 0); err != nil || string(content) != "written" {
		t.Errorf("it holds %q (%v)", content, err)
	}
}
