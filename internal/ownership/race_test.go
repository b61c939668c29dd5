package ownership_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// walks is how often a tree is changed while others swap what is in it.
const walks = 300

// A pod that has the volume swaps names all the time: a file, and a directory, each for a
// symlink that leads out of it.
func TestWhatIsSwappedDuringTheWalkLeadsNowhereElse(t *testing.T) {
	mounttest.NeedsRoot(t)
	top, outside := folder(t, 0o700, t.TempDir(), "top"), folder(t, 0o700, t.TempDir(), "outside")
	secret, inside := file(t, 0o600, outside, "secret"), folder(t, 0o700, outside, "inside")
	below := file(t, 0o600, inside, "secret")
	for range 50 {
		_ = file(t, 0o600, top, "plain"+string(rune('a'+len(names(t, top)))))
	}
	_ = file(t, 0o600, top, "file")
	_ = file(t, 0o600, folder(t, 0o700, top, "dir"), "secret")
	must(t, errors.Join(os.Symlink(secret, filepath.Join(top, "to-file")), os.Symlink(inside, filepath.Join(top, "to-dir"))))
	swaps := swapUntilDone(t, [][2]string{
		{filepath.Join(top, "file"), filepath.Join(top, "to-file")},
		{filepath.Join(top, "dir"), filepath.Join(top, "to-dir")},
	})
	volume := mounttest.Open(t, top)
	for i := range walks {
		_, err := ownership.Group{ID: someGroup + i%2}.Apply(t.Context(), volume, ignoreProgress)
		must(t, err)
	}
	if made := swaps(); made < 2*walks {
		t.Errorf("only %d swaps were made: too few to prove anything", made)
	}
	mustBe(t, secret, 0, 0o600)
	mustBe(t, below, 0, 0o600)
	mustBe(t, inside, 0, 0o700)
	mustBe(t, outside, 0, 0o700)
}

func names(t *testing.T, path string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(path)
	must(t, err)
	return entries
}

// swapUntilDone swaps each pair of names again and again, until it is asked how often.
func swapUntilDone(t *testing.T, pairs [][2]string) (done func() int64) {
	ctx, cancel := context.WithCancel(t.Context())
	var count atomic.Int64
	var wait sync.WaitGroup
	for _, pair := range pairs {
		wait.Go(func() {
			for ctx.Err() == nil {
				if unix.Renameat2(unix.AT_FDCWD, pair[0], unix.AT_FDCWD, pair[1], unix.RENAME_EXCHANGE) == nil {
					count.Add(1)
				}
			}
		})
	}
	stop := func() int64 { cancel(); wait.Wait(); return count.Load() }
	t.Cleanup(func() { stop() })
	return stop
}

// What is moved within the tree, up and down, is neither an error nor an endless walk.
func TestDirectoriesThatMoveAreNoError(t *testing.T) {
	mounttest.NeedsRoot(t)
	top := folder(t, 0o700, t.TempDir(), "top")
	first, second := folder(t, 0o700, top, "a", "b", "c"), folder(t, 0o700, top, "z")
	for _, at := range []string{first, second} {
		_ = file(t, 0o600, at, "plain")
	}
	swaps := swapUntilDone(t, [][2]string{{first, second}})
	volume := mounttest.Open(t, top)
	deadline := time.Now().Add(2 * time.Second)
	for time.Now().Before(deadline) {
		_, err := ownership.Group{ID: someGroup}.Apply(t.Context(), volume, ignoreProgress)
		must(t, err)
	}
	if swaps() == 0 {
		t.Error("nothing was moved")
	}
}
