package volumes_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

func TestADeviceIsMountedOnAFileAndUnmountedWithIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	kernel := mount.Kernel{}
	base, other, _ := dirs(t)
	null, err := os.OpenFile("/dev/null", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	target := filepath.Join(base, "device")
	for range 2 {
		if err := volumes.BindFile(kernel, null, target, mount.ReadOnly); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(target); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("it is %v (%v)", info, err)
	}
	if err := volumes.BindFile(kernel, other, target, mount.ReadOnly); !errors.Is(err, mount.ErrMounted) {
		t.Errorf("mounting something else over it gave %v", err)
	}
	for range 2 {
		if err := volumes.UnbindFile(kernel, target); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(target); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}
