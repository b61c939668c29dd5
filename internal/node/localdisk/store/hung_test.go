package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// soon is more than what a disk that answers takes, and less than for ever.
const soon = 20 * time.Second

// The calls that freeze and thaw a file system: see ioctl_fs in linux/fs.h.
const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
)

func TestADiskThatHangsDelaysNoOther(t *testing.T) {
	mounttest.NeedsRoot(t)
	base := realDir(t)
	hung, well := filepath.Join(base, "hung"), filepath.Join(base, "well")
	if err := os.Mkdir(well, 0o700); err != nil {
		t.Fatal(err)
	}
	thaw := freeze(t, hung)
	store := newImageStore(base)
	stuck := layout.Volume{Path: hung, Name: "pvc-stuck", Bytes: mi}
	counting, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- store.Make(context.WithoutCancel(t.Context()), stuck, func() ([]layout.Volume, error) {
			close(counting)
			return nil, nil
		})
	}()
	<-counting // From here on it has the lock of its disk, and can't write.

	others := listing(stuck, layout.Volume{Path: hung, Name: "pvc-there", Bytes: mi, Provisioned: true})
	for name, work := range map[string]func() error{
		"making": func() error {
			return store.Make(t.Context(), layout.Volume{Path: well, Name: "pvc-1", Bytes: mi}, others)
		},
		"an image":  func() error { return store.Make(t.Context(), newImage(base), others) },
		"measuring": func() error { return measureRoom(t, store, well, others) },
		"removing":  func() error { return store.Remove(t.Context(), layout.Volume{Path: well, Name: "pvc-2"}) },
		"copying": func() error {
			end, err := store.copies.begin(filepath.Join(well, "pvc-1"), func() error { return nil })
			if err == nil {
				end()
			}
			return err
		},
	} {
		mustEndSoon(t, name, work)
	}
	select {
	case err := <-ended:
		t.Errorf("the volume on the disk that hangs was made: %v", err)
	default:
	}
	thaw()
	if err := <-ended; err != nil {
		t.Errorf("it wasn't made when the disk answered again: %v", err)
	}
}

func measureRoom(t *testing.T, store *Store, path string, others layout.Lister) error {
	folder, err := store.Disks.OpenFolder(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	_, err = store.Rooms.At(t.Context(), folder, layout.Volume{Path: path}, others)
	return err
}

func mustEndSoon(t *testing.T, name string, work func() error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- work() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%s on another disk: %v", name, err)
		}
	case <-time.After(soon):
		t.Errorf("%s on another disk was held up", name)
	}
}

// freeze mounts a disk where writes hang until it is thawed.
func freeze(t *testing.T, path string) (thaw func()) {
	t.Helper()
	mountNew(t, path, "ext4", 64*mi)
	top, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetInt(int(top.Fd()), fiFreeze, 0); err != nil {
		t.Fatal(err)
	}
	isFrozen := true
	thaw = func() {
		if isFrozen {
			isFrozen = false
			if err := unix.IoctlSetInt(int(top.Fd()), fiThaw, 0); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(func() {
		thaw()
		top.Close()
	})
	return thaw
}
