package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestVolumesThatAreMadeAtOnceNeverGetMoreThanTheDiskHas(t *testing.T) {
	mounttest.NeedsRoot(t)
	const rounds, room, asked = 30, 4, 16
	for range rounds {
		base := newDisk(t, room*1024*mi)
		var all []layout.Volume
		for i := range asked {
			all = append(all, layout.Volume{Path: base, Name: fmt.Sprintf("pvc-%d", i), Bytes: 1024 * mi})
		}
		if made := makeAtOnce(t, NewStore(base, filesystem.FileSystems{}), all); made != room {
			t.Fatalf("%d volumes were made where %d fit", made, room)
		}
	}
}

func TestOfAHundredVolumesThatAreMadeAtOnceThoseAreMadeThatFit(t *testing.T) {
	mounttest.NeedsRoot(t)
	const room, asked = 37, 100
	base := newDisk(t, room*1024*mi)
	var all []layout.Volume
	for i := range asked {
		all = append(all, layout.Volume{Path: base, Name: fmt.Sprintf("pvc-%d", i), Bytes: 1024 * mi})
	}
	if made := makeAtOnce(t, NewStore(base, filesystem.FileSystems{}), all); made != room {
		t.Errorf("%d volumes were made where %d fit", made, room)
	}
	dirs, err := filepath.Glob(filepath.Join(base, "pvc-*"))
	if err != nil || len(dirs) != room {
		t.Errorf("%d directories are there (%v)", len(dirs), err)
	}
}

// makeAtOnce makes all volumes at the same time and counts those that were made.
func makeAtOnce(t *testing.T, store *Store, all []layout.Volume) int32 {
	t.Helper()
	var made atomic.Int32
	var group sync.WaitGroup
	start := make(chan struct{})
	for i, volume := range all {
		others := slices.Concat(all[:i], all[i+1:])
		group.Go(func() {
			<-start
			err := store.Make(t.Context(), volume, listing(others...))
			switch {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, layout.ErrExhausted):
				t.Error(err)
			}
		})
	}
	close(start)
	group.Wait()
	return made.Load()
}

// listing is a node's other volumes.
func listing(others ...layout.Volume) layout.Lister {
	return func() ([]layout.Volume, error) { return others, nil }
}

func TestAVolumeIsThereOnlyOnceItSurvivesALossOfPower(t *testing.T) {
	base := t.TempDir()
	store := NewStore(base, filesystem.FileSystems{})
	volume := layout.Volume{Path: filepath.Join(base, "fast"), Name: "pvc-1", Bytes: 1}
	unwritten := func() error { return store.Make(t.Context(), volume, listing()) }

	// Neither the name of the folder, without which there can be no volume in it,
	if err := mounttest.Sync.Under(t, unwritten); !errors.Is(err, unix.EIO) {
		t.Errorf("got %v", err)
	}
	if exists, err := store.Base.Exists(volume); err != nil || exists {
		t.Errorf("it was made in a folder whose name may be lost (%v)", err)
	}
	// nor its own is taken for written because it is there.
	if err := unwritten(); err != nil {
		t.Fatal(err)
	}
	if err := mounttest.Sync.Under(t, unwritten); !errors.Is(err, unix.EIO) {
		t.Errorf("got %v", err)
	}
}

// newDisk mounts a disk of some size until the test ends.
func newDisk(t *testing.T, bytes int64) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := (mount.Kernel{}).Tmpfs(path, mount.TmpfsOptions{Bytes: bytes, Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := (mount.Kernel{}).Unmount(path); err != nil {
			t.Error(err)
		}
	})
	return path
}
