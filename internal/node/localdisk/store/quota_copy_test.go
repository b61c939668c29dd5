package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// The copy holds each file by one more name while it is made, within its own quota.
func TestAVolumeThatFillsItsQuotaIsCopiedWithItsHardLinks(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume layout.Volume) {
		if err := store.Make(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			first := fmt.Sprintf("%s/%d", volume.Directory(), i)
			if err := errors.Join(os.WriteFile(first, []byte("x"), 0o600), os.Link(first, first+"-too")); err != nil {
				t.Fatal(err)
			}
		}
		fillUp(t, filepath.Join(volume.Directory(), "rest"), 16*mi)
		copied := volume
		copied.Name, copied.Source = "pvc-2", &volume
		if err := store.Make(t.Context(), copied, listing()); err != nil {
			t.Fatal(err)
		}
		if _, limit := projectThere(t, store, copied); limit != copied.Bytes {
			t.Errorf("the copy may have %d bytes", limit)
		}
		names, err := os.ReadDir(copied.Directory())
		if err != nil || len(names) != 601 {
			t.Errorf("the copy has %d names: %v", len(names), err)
		}
		var stat unix.Stat_t
		if err := unix.Stat(filepath.Join(copied.Directory(), "7"), &stat); err != nil || stat.Nlink != 2 {
			t.Errorf("a file has %d names: %v", stat.Nlink, err)
		}
	})
}

// fillUp writes a file until its volume is full, or has so much.
func fillUp(t *testing.T, path string, most int64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	block := make([]byte, 4096)
	for i := range block {
		block[i] = 'x'
	}
	for written := int64(0); written < most; written += int64(len(block)) {
		// A privileged process isn't stopped by the quotas of ext4.
		if _, err := file.Write(block); err != nil {
			if !errors.Is(err, unix.EDQUOT) && !errors.Is(err, unix.ENOSPC) {
				t.Fatal(err)
			}
			return
		}
	}
}

func TestACopyThatIsLargerThanItsClaimIsNotMade(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume layout.Volume) {
		if err := store.Make(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		fillUp(t, filepath.Join(volume.Directory(), "file"), 12*mi)
		copied := volume
		copied.Name, copied.Source, copied.Bytes = "pvc-2", &volume, 8*mi
		err := store.Make(t.Context(), copied, listing())
		if exists, there := store.Base.Exists(copied); !errors.Is(err, unix.EDQUOT) || exists || there != nil {
			t.Errorf("got %v, and it is there: %v (%v)", err, exists, there)
		}
	})
}
