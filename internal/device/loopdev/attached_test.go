package loopdev_test

import (
	"os"
	"testing"

	"github.com/stowage-dev/stowage/internal/device/devicetest"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func TestOneReadFindsTheDevicesOfAllImages(t *testing.T) {
	mounttest.NeedsRoot(t)
	first, second, none := devicetest.NewImage(t, devicetest.Mebibyte), devicetest.NewImage(t, devicetest.Mebibyte), devicetest.NewImage(t, devicetest.Mebibyte)
	one, other := devicetest.Attach(t, first, loopdev.ForBlock), devicetest.Attach(t, second, loopdev.ForBlock)
	attached, err := loopdev.ReadAttached()
	if err != nil {
		t.Fatal(err)
	}
	if found, err := attached.Find(none); found != nil || err != nil {
		t.Errorf("an image without a device has %v, %v", found, err)
	}
	for file, want := range map[*os.File]string{first: one.Path(), second: other.Path()} {
		found, err := attached.Find(file)
		if err != nil || found == nil || found.Path() != want {
			t.Fatalf("%s has %v, %v", file.Name(), found, err)
		}
		found.Close()
	}
}

func TestADeviceThatAnotherFileBacksSinceIsNotFound(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	loop := devicetest.Attach(t, image, loopdev.ForBlock)
	attached, err := loopdev.ReadAttached()
	if err != nil {
		t.Fatal(err)
	}
	if err := loop.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := attached.Find(image); found != nil || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
}
