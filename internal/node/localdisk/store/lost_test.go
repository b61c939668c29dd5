package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestAVolumeIsLostOnlyIfItsDiskIsReadAndLacksIt(t *testing.T) {
	base := realDir(t)
	store := NewStore(base, filesystem.FileSystems{})
	accepted, err := store.Disks.Identify(identity.Disk{Name: "fast", Path: filepath.Join(base, "fast"), Backend: "fast"}, listing())
	if err != nil {
		t.Fatal(err)
	}
	volume := layout.Volume{Path: filepath.Join(base, "fast"), Name: "pvc-1", Bytes: mi, Disk: accepted}
	if err := store.Make(t.Context(), volume, listing()); err != nil {
		t.Fatal(err)
	}
	volume.Provisioned = true
	if err := store.Confirm(volume); err != nil {
		t.Errorf("it is there, and got %v", err)
	}

	// A disk may give an error today, and what it holds tomorrow.
	for name, refused := range map[string]mounttest.Refusal{
		"reading the marker":     {First: unix.SYS_READ, Last: unix.SYS_READ, Errno: unix.EIO},
		"opening the folder":     {First: unix.SYS_OPENAT2, Last: unix.SYS_OPENAT2, Errno: unix.EIO},
		"asking the file system": {First: unix.SYS_FSTATFS, Last: unix.SYS_FSTATFS, Errno: unix.EIO},
	} {
		err := refused.Under(t, func() error { return store.Confirm(volume) })
		if !errors.Is(err, unix.EIO) || errors.Is(err, layout.ErrLost) {
			t.Errorf("%s gave %v", name, err)
		}
	}

	other := volume
	other.Disk = &stowagev1alpha1.DiskIdentity{ID: "another"}
	if err := store.Confirm(other); !errors.Is(err, layout.ErrLost) {
		t.Errorf("another disk was there, and got %v", err)
	}
	if err := os.Remove(volume.Directory()); err != nil {
		t.Fatal(err)
	}
	if err := store.Confirm(volume); !errors.Is(err, layout.ErrLost) {
		t.Errorf("it is gone, and got %v", err)
	}
}
