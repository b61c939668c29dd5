package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/limit"
	"github.com/stowage-dev/stowage/internal/quota"
)

// inodesThere is what a volume takes up, and may.
func inodesThere(t *testing.T, volume layout.Volume) (used, most, share int64) {
	t.Helper()
	there, err := limit.Find(mounttest.Open(t, volume.Directory()), volume)
	if err != nil || there == nil {
		t.Fatal(there, err)
	}
	share, err = quota.ShareOfInodes(mounttest.Open(t, volume.Path), volume.Bytes)
	if err != nil || share == 0 {
		t.Fatal(share, err)
	}
	return there.Usage.Inodes, there.Usage.Limit.Inodes, share
}

//proves:csi/local-quota
func TestInodesAreLimitedInProportionAndGrowWithTheVolume(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume layout.Volume) {
		if err := store.Make(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		_, before, share := inodesThere(t, volume)
		if before != share {
			t.Errorf("it may have %d, want %d", before, share)
		}
		volume.Bytes *= 2
		if err := store.Grant(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		if _, after, share := inodesThere(t, volume); after != share || after < before*3/2 {
			t.Errorf("after it grew it may have %d, want %d", after, share)
		}
	})
}

// onSmallVolumes is for tests that make more files than go with a volume's bytes: 2048 at most
// go with these.
func onSmallVolumes(t *testing.T, test func(t *testing.T, store *Store, volume layout.Volume)) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume layout.Volume) {
		volume.Bytes, volume.Has = 4*mi, 4*mi
		test(t, store, volume)
	})
}

// asBefore makes a volume what the last release made: it has files beyond its share, and no
// limit of inodes.
func asBefore(t *testing.T, store *Store, volume layout.Volume) (files int64) {
	t.Helper()
	if err := store.Make(t.Context(), volume, listing()); err != nil {
		t.Fatal(err)
	}
	_, _, share := inodesThere(t, volume)
	there, err := limit.Find(mounttest.Open(t, volume.Directory()), volume)
	if err == nil {
		err = there.Set(quota.Limits{Bytes: volume.Bytes})
	}
	if err != nil {
		t.Fatal(err)
	}
	for files = range share + 100 {
		if err := os.WriteFile(filepath.Join(volume.Directory(), fmt.Sprint(files)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files + 1
}

//proves:csi/local-quota
func TestAVolumeOfBeforeKeepsItsInodes(t *testing.T) {
	onSmallVolumes(t, func(t *testing.T, store *Store, volume layout.Volume) {
		files := asBefore(t, store, volume)
		for range 2 {
			if err := store.Mend(volume); err != nil {
				t.Fatal(err)
			}
			used, limit, share := inodesThere(t, volume)
			if used < files || limit != used+used/10 || limit <= share {
				t.Errorf("it has %d, and may have %d; its share is %d", used, limit, share)
			}
		}
	})
}

func TestACopyMayHaveTheInodesOfItsSource(t *testing.T) {
	onSmallVolumes(t, func(t *testing.T, store *Store, volume layout.Volume) {
		files := asBefore(t, store, volume)
		copied := volume
		copied.Name, copied.Source = "pvc-2", &volume
		if err := store.Make(t.Context(), copied, listing()); err != nil {
			t.Fatal(err)
		}
		used, limit, _ := inodesThere(t, copied)
		if used < files || limit != used {
			t.Errorf("it has %d, and may have %d", used, limit)
		}
		small := layout.Volume{Path: volume.Path, Name: "pvc-3", Bytes: volume.Bytes}
		if err := store.Make(t.Context(), small, listing()); err != nil {
			t.Fatal(err)
		}
		copied.Name, copied.Source = "pvc-4", &small
		if err := store.Make(t.Context(), copied, listing()); err != nil {
			t.Fatal(err)
		}
		if _, limit, share := inodesThere(t, copied); limit != share {
			t.Errorf("a copy of few files may have %d, want %d", limit, share)
		}
	})
}
