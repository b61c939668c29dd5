package localvolume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/quota"
)

func TestADiskWithoutInodesHasNoRoomForNewVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		inodes, free int64
		lacks        bool
	}{
		"many are left":                     {1 << 20, 1024, false},
		"few are left of many":              {1 << 20, 1023, true},
		"few are left of few":               {1000, 49, true},
		"a twentieth is left of few":        {1000, 50, false},
		"the file system has no such thing": {0, 0, false},
	} {
		there := room{total: 10 * gi, free: 10 * gi, inodes: test.inodes, freeInodes: test.free}
		err := there.checkNew(gi)
		if lacks := errors.Is(err, errExhausted) && strings.Contains(err.Error(), "inodes"); lacks != test.lacks || there.left() == 0 != test.lacks {
			t.Errorf("%s: %d left, %v", name, there.left(), err)
		}
		if err := there.check(gi, 0); err != nil {
			t.Errorf("%s: a volume can't grow: %v", name, err)
		}
	}
}

func TestAVolumeKeepsTheInodesThatItHas(t *testing.T) {
	for name, test := range map[string]struct{ share, limit, used, want int64 }{
		"a new one":                               {1000, 1000, 10, 1000},
		"one that grew":                           {2000, 1000, 10, 2000},
		"one whose growth was taken back":         {1000, 2000, 10, 2000},
		"one that was made without a limit":       {1000, 0, 10, 1000},
		"one that was made without, and has more": {1000, 0, 5000, 5500},
		"one that had more, and removed them":     {1000, 5500, 10, 5500},
		"one on a disk that has no such thing":    {0, 0, 10, 0},
	} {
		if got := mayHave(test.share, quota.Usage{Inodes: test.used, Limit: quota.Limits{Inodes: test.limit}}); got != test.want {
			t.Errorf("%s may have %d, want %d", name, got, test.want)
		}
	}
}

func TestALookSaysThatAVolumeHasHardlyAnyInodesLeft(t *testing.T) {
	for used, full := range map[int64]bool{94: false, 95: true} {
		seen := sight{usage: &Usage{Size: 1 << 30, Inodes: &used}, mostInodes: 100}
		seen.lookAtLimits("")
		if (len(seen.troubles) == 1) != full || full && !strings.Contains(seen.troubles[0].message, "files as it may have") {
			t.Errorf("%d of 100: %v", used, seen.troubles)
		}
	}
}

// inodesThere is what a volume takes up, and may.
func inodesThere(t *testing.T, volume Volume) (used, limit, share int64) {
	t.Helper()
	there, err := findLimited(mounttest.Open(t, volume.directory()), volume)
	if err != nil || there == nil {
		t.Fatal(there, err)
	}
	share, err = quota.ShareOfInodes(mounttest.Open(t, volume.Path), volume.Bytes)
	if err != nil || share == 0 {
		t.Fatal(share, err)
	}
	return there.usage.Inodes, there.usage.Limit.Inodes, share
}

//proves:csi/local-quota
func TestInodesAreLimitedInProportionAndGrowWithTheVolume(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume Volume) {
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

// asBefore makes a volume what the last release made: it has files beyond its share, and no
// limit of inodes.
func asBefore(t *testing.T, store *Store, volume Volume) (files int64) {
	t.Helper()
	if err := store.Make(t.Context(), volume, listing()); err != nil {
		t.Fatal(err)
	}
	_, _, share := inodesThere(t, volume)
	there, err := findLimited(mounttest.Open(t, volume.directory()), volume)
	if err == nil {
		err = there.set(quota.Limits{Bytes: volume.Bytes})
	}
	if err != nil {
		t.Fatal(err)
	}
	for files = range share + 100 {
		if err := os.WriteFile(filepath.Join(volume.directory(), fmt.Sprint(files)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files + 1
}

//proves:csi/local-quota
func TestAVolumeOfBeforeKeepsItsInodes(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume Volume) {
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
	onQuotaDisks(t, func(t *testing.T, store *Store, volume Volume) {
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
		small := Volume{Path: volume.Path, Name: "pvc-3", Bytes: volume.Bytes}
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
