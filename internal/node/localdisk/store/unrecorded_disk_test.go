package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestAVolumeWithoutANodeVolumeIsKnownByItsRecordOnARealDisk(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			store, disk, volume := onRealDisk(t, fsType)
			want := stowagev1alpha1.UnrecordedVolume{
				ID: volume.Name, ClaimNamespace: "shop", ClaimName: "orders", ClaimUID: "1", Layout: stowagev1alpha1.LayoutDirectory,
			}
			nothing := func() (map[string]bool, error) { return nil, nil }

			found, err := store.Disks.Unrecorded(disk, nothing)

			if err != nil || found.Count != 1 || found.Volumes[0] != want {
				t.Fatalf("it finds %v, error %v", found, err)
			}
			everything := func() (map[string]bool, error) { return map[string]bool{volume.Name: true}, nil }
			if found, err := store.Disks.Unrecorded(disk, everything); err != nil || found.Count != 0 {
				t.Errorf("beside its NodeVolume it finds %v, error %v", found, err)
			}
		})
	}
}

func TestACopyOfAVolumeHasNoRecordOfItsOwn(t *testing.T) {
	store, disk, volume := onRealDisk(t, "ext4")
	copied := filepath.Join(volume.Path, "pvc-2")
	record := make([]byte, layout.MaxRecord)
	size, err := unix.Getxattr(filepath.Join(string(store.Base), "fast", volume.Name), layout.RecordName, record)
	if err = errors.Join(err, os.Mkdir(copied, 0o700), unix.Setxattr(copied, layout.RecordName, record[:size], 0)); err != nil {
		t.Fatal(err)
	}

	found, err := store.Disks.Unrecorded(disk, func() (map[string]bool, error) { return nil, nil })

	if err != nil || found.Count != 2 || found.Volumes[1] != (stowagev1alpha1.UnrecordedVolume{ID: "pvc-2"}) {
		t.Errorf("it finds %v, error %v", found, err)
	}
}

func TestAVolumeOnAReadOnlyDiskNeedsNoNewRecord(t *testing.T) {
	store, _, volume := onRealDisk(t, "ext4")
	volume.Owner.Name = "renamed"
	if err := unix.Mount("", volume.Path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := store.Base.KeepRecord(volume); err != nil {
		t.Errorf("on a read-only disk: %v", err)
	}
}

// onRealDisk is a volume on a disk of a type that was accepted.
func onRealDisk(t *testing.T, fsType string) (*Store, identity.Disk, layout.Volume) {
	t.Helper()
	base := realDir(t)
	mountNew(t, filepath.Join(base, "fast"), fsType, 512<<20)
	store := NewStore(base, filesystem.FileSystems{})
	volume := layout.Volume{
		Path: filepath.Join(base, "fast"), Name: "pvc-1", Bytes: 1 << 20,
		Owner: stowagev1alpha1.ClaimReference{Namespace: "shop", Name: "orders", UID: "1"},
	}
	none := func() ([]layout.Volume, error) { return nil, nil }
	disk := identity.Disk{Name: "fast.1", Path: volume.Path, Backend: "fast"}
	identity, err := store.Disks.Identify(disk, none)
	if err != nil {
		t.Fatal(err)
	}
	disk.Known, volume.Disk = identity, identity
	if err := errors.Join(store.Make(t.Context(), volume, none), store.Base.KeepRecord(volume)); err != nil {
		t.Fatal(err)
	}
	return store, disk, volume
}
