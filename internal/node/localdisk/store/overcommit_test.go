package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestRoomIsNotAllocatedTwiceBesideFilesThatAreNoVolumes(t *testing.T) {
	mounttest.NeedsRoot(t)
	for name, image := range map[string]*layout.Image{"directories": nil, "sparse images": {Sparse: true}} {
		t.Run(name, func(t *testing.T) {
			base := newDisk(t, 100*mi)
			write(t, filepath.Join(base, "other"), 40*mi)
			store := NewStore(base, filesystem.FileSystems{})
			first := layout.Volume{Path: base, Name: "pvc-1", Bytes: 40 * mi, Image: image}
			if err := store.Make(t.Context(), first, listing()); err != nil {
				t.Fatal(err)
			}
			second := layout.Volume{Path: base, Name: "pvc-2", Bytes: 40 * mi, Image: image}
			if err := store.Make(t.Context(), second, listing(first)); !errors.Is(err, layout.ErrExhausted) {
				t.Errorf("of 60Mi that are free 80Mi were given: %v", err)
			}
			second.Bytes = 20 * mi
			if err := store.Make(t.Context(), second, listing(first)); err != nil {
				t.Errorf("what was left wasn't given: %v", err)
			}
		})
	}
}

func TestWhatVolumesHaveWrittenIsNotKeptForThemAgain(t *testing.T) {
	mounttest.NeedsRoot(t)
	base := newDisk(t, 100*mi)
	store := NewStore(base, filesystem.FileSystems{})
	directory := layout.Volume{Path: base, Name: "pvc-1", Bytes: 30 * mi}
	sparse := layout.Volume{Path: base, Name: "pvc-2", Bytes: 30 * mi, Image: &layout.Image{Sparse: true}}
	for _, volume := range []layout.Volume{directory, sparse} {
		if err := store.Make(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(directory.Directory(), "data"), 30*mi)
	write(t, sparse.ImagePath(), 30*mi)
	directory.Used = 30 * mi

	third := layout.Volume{Path: base, Name: "pvc-3", Bytes: 39 * mi}
	if err := store.Make(t.Context(), third, listing(directory, sparse)); err != nil {
		t.Error(err)
	}
}

// write writes a file over.
func write(t *testing.T, path string, bytes int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
}
