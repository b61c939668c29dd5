package filetree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func TestAllIsMovedButOneName(t *testing.T) {
	base := mounttest.TempDir(t)
	canary := mounttest.WriteFile(t, mounttest.MakeDir(t, base, "precious"), "canary", "alive")
	from, to := mounttest.MakeDir(t, base, "from"), mounttest.MakeDir(t, base, "from", "aside", "mine")
	for i := range 3000 {
		mounttest.WriteFile(t, from, fmt.Sprintf("file-%d", i), "")
	}
	mounttest.WriteFile(t, mounttest.MakeDir(t, from, "dir"), "inside", "moved")
	for name, target := range map[string]string{"link": filepath.Dir(canary), "nowhere": "x"} {
		if err := os.Symlink(target, filepath.Join(from, name)); err != nil {
			t.Fatal(err)
		}
	}

	if err := filetree.MoveAll(t.Context(), mounttest.Open(t, from), mounttest.Open(t, to), "aside", time.Time{}); err != nil {
		t.Fatal(err)
	}

	left, err := os.ReadDir(from)
	if err != nil || len(left) != 1 || left[0].Name() != "aside" {
		t.Errorf("left are %v (%v)", left, err)
	}
	moved, err := os.ReadDir(to)
	if err != nil || len(moved) != 3003 {
		t.Errorf("%d were moved (%v)", len(moved), err)
	}
	mounttest.MustHold(t, filepath.Join(to, "dir", "inside"), "moved")
	mounttest.MustHold(t, canary, "alive")
}

func TestNothingIsMovedIntoADirectoryThatWasRemoved(t *testing.T) {
	base := mounttest.TempDir(t)
	from, to := mounttest.MakeDir(t, base, "from"), mounttest.MakeDir(t, base, "to")
	kept := mounttest.WriteFile(t, from, "kept", "alive")
	target := mounttest.Open(t, to)
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	mounttest.MakeDir(t, base, "to")

	if err := filetree.MoveAll(t.Context(), mounttest.Open(t, from), target, "", time.Time{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	mounttest.MustHold(t, kept, "alive")
}

func TestWhatIsMountedOnIsNotMoved(t *testing.T) {
	mounttest.NeedsRoot(t)
	base := mounttest.TempDir(t)
	from, to, precious := mounttest.MakeDir(t, base, "from"), mounttest.MakeDir(t, base, "to"), mounttest.MakeDir(t, base, "precious")
	inside := mounttest.MakeDir(t, from, "inside")
	mounttest.Bind(t, precious, inside, mount.ReadWrite)

	if err := filetree.MoveAll(t.Context(), mounttest.Open(t, from), mounttest.Open(t, to), "", time.Time{}); !errors.Is(err, mount.ErrMounted) {
		t.Errorf("got %v", err)
	}
	mounttest.Unmount(t, inside)
}

func TestADirectoryIsEmptyOrNotAndOnlyAnEmptyOneIsRemoved(t *testing.T) {
	base := mounttest.TempDir(t)
	dir := mounttest.MakeDir(t, base, "dir")
	file := mounttest.WriteFile(t, dir, "file", "kept")
	for _, want := range []bool{false, true} {
		if empty, err := filetree.IsEmpty(mounttest.Open(t, dir)); err != nil || empty != want {
			t.Errorf("empty is %v (%v)", empty, err)
		}
		if err := filetree.RemoveDir(mounttest.Open(t, base), "dir"); err != nil {
			t.Error(err)
		}
		if !want {
			mounttest.MustHold(t, file, "kept")
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	mounttest.MustNotExist(t, dir)
}
