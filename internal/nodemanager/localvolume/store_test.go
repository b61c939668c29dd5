package localvolume

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func TestVolumesThatAreMadeAtOnceNeverGetMoreThanTheDiskHas(t *testing.T) {
	mounttest.NeedsRoot(t)
	const rounds, room, asked = 30, 4, 16
	for range rounds {
		base := newDisk(t, room*gi)
		var all []Volume
		for i := range asked {
			all = append(all, Volume{Path: base, Name: fmt.Sprintf("pvc-%d", i), Bytes: gi})
		}
		if made := makeAtOnce(t, &Store{Base: base}, all); made != room {
			t.Fatalf("%d volumes were made where %d fit", made, room)
		}
	}
}

// makeAtOnce makes all volumes at the same time and counts those that were made.
func makeAtOnce(t *testing.T, store *Store, all []Volume) int32 {
	t.Helper()
	var made atomic.Int32
	var group sync.WaitGroup
	start := make(chan struct{})
	for i, volume := range all {
		others := slices.Concat(all[:i], all[i+1:])
		group.Go(func() {
			<-start
			err := store.Make(volume, others)
			switch {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, errExhausted):
				t.Error(err)
			}
		})
	}
	close(start)
	group.Wait()
	return made.Load()
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
