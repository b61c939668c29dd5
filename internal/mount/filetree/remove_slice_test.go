package filetree_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// removeInSlices repeats a removal that has no time left, at most so often, and returns how
// often it was needed.
func removeInSlices(t *testing.T, base string, atMost int) (int, error) {
	t.Helper()
	parent := mounttest.Open(t, base)
	for i := range atMost {
		err := filetree.RemoveTreeUntil(t.Context(), parent, "tree", time.Now().Add(-time.Hour))
		if err == nil {
			mounttest.MustNotExist(t, filepath.Join(base, "tree"))
		}
		if !errors.Is(err, filetree.ErrUnfinished) {
			return i + 1, err
		}
	}
	return atMost, fmt.Errorf("%d slices: %w", atMost, filetree.ErrUnfinished)
}

func TestARemovalStopsWhenItsTimeIsUpAndEachCallMakesProgress(t *testing.T) {
	base := mounttest.TempDir(t)
	const folders, files = 10, 30
	for i := range folders {
		folder := mounttest.MakeDir(t, base, "tree", fmt.Sprint(i))
		for k := range files {
			mounttest.WriteFile(t, folder, fmt.Sprint(k), "")
		}
	}
	// The tree's own directory goes with the last call.
	slices, err := removeInSlices(t, base, folders*(files+1)+1)
	if slices < folders*files/10 || err != nil {
		t.Errorf("%d slices were needed, which took the time of others: %v", slices, err)
	}
}

func TestARemovalWithTimeNeedsOneSlice(t *testing.T) {
	base := mounttest.TempDir(t)
	mounttest.WriteFile(t, mounttest.MakeDir(t, base, "tree", "a", "b"), "file", "")
	err := filetree.RemoveTreeUntil(t.Context(), mounttest.Open(t, base), "tree", time.Now().Add(time.Hour))
	if err != nil {
		t.Error(err)
	}
	mounttest.MustNotExist(t, filepath.Join(base, "tree"))
}

// The way down is gone again in each slice: were it all that a slice has time for, there would
// be no end.
func TestSlicesOfATreeThatIsDeepAndCannotBeMovedAreFew(t *testing.T) {
	base := mounttest.TempDir(t)
	makeDeep(t, base, 3000)
	other := mounttest.Refusal{First: unix.SYS_RENAMEAT2, Last: unix.SYS_RENAMEAT2, Errno: unix.EXDEV}
	err := other.Under(t, func() error {
		_, err := removeInSlices(t, base, 5)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSlicesOfADeepTreeAreFew(t *testing.T) {
	base := mounttest.TempDir(t)
	makeDeep(t, base, 3000)
	if _, err := removeInSlices(t, base, 3000/32); err != nil {
		t.Error(err)
	}
}

func TestWhatWasRetiredBeforeAndWhatIsUnfinishedAreRemovedInSlicesToo(t *testing.T) {
	for name, remove := range map[string]func(t *testing.T, base string) error{
		".deleting/volume": func(t *testing.T, base string) error {
			return filetree.RemoveRetired(t.Context(), mounttest.Open(t, base), "volume", time.Now().Add(-time.Hour))
		},
		".new-volume": func(t *testing.T, base string) error {
			return filetree.RemoveUnfinishedUntil(t.Context(), mounttest.Open(t, base), "volume", time.Now().Add(-time.Hour))
		},
	} {
		base := mounttest.TempDir(t)
		for i := range 3 {
			mounttest.WriteFile(t, mounttest.MakeDir(t, base, name), fmt.Sprint(i), "")
		}
		for range 3 {
			if err := remove(t, base); !errors.Is(err, filetree.ErrUnfinished) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if err := remove(t, base); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		mounttest.MustNotExist(t, filepath.Join(base, name))
	}
}
