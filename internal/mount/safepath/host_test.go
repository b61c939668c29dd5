package safepath_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

func TestAPathOfTheHostMayLeadThroughSymlinksButNotIntoTheAgentItself(t *testing.T) {
	dir := mounttest.TempDir(t)
	file := mounttest.WriteFile(t, dir, "file", "hello")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	opened, err := safepath.OpenHost(link)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	found, foundErr := opened.Stat()
	wanted, wantedErr := os.Stat(file)
	if err := errors.Join(foundErr, wantedErr); err != nil || !os.SameFile(found, wanted) {
		t.Errorf("it leads to %+v (%v)", found, err)
	}

	for _, path := range []string{"/proc/self/root", "/proc/self/fd/0", "/proc/self/cwd/file"} {
		if _, err := safepath.OpenHost(path); !errors.Is(err, safepath.ErrOutside) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if _, err := safepath.OpenHost(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a path that leads nowhere: %v", err)
	}
}

func TestAFileIsMadeOnceWithItsModeWhateverTheUmask(t *testing.T) {
	dir := mounttest.TempDir(t)
	parent := mounttest.Open(t, dir)
	before := unix.Umask(0o077)
	defer unix.Umask(before)
	var makers sync.WaitGroup
	for range 8 {
		makers.Go(func() {
			file, err := safepath.EnsureFile(parent, "file", 0o644)
			if err != nil {
				t.Error(err)
				return
			}
			file.Close()
		})
	}
	makers.Wait()
	if info, err := os.Stat(filepath.Join(dir, "file")); err != nil || info.Mode() != 0o644 {
		t.Errorf("it is %v (%v)", info, err)
	}
}

func TestAFileThatIsThereStaysAsItIsAndSomethingElseIsRefused(t *testing.T) {
	dir := mounttest.TempDir(t)
	parent := mounttest.Open(t, dir)
	kept := mounttest.WriteFile(t, dir, "kept", "hello")
	file, err := safepath.EnsureFile(parent, "kept", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	mounttest.MustHold(t, kept, "hello")
	if info, err := os.Stat(kept); err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v (%v)", info, err)
	}

	elsewhere := filepath.Join(mounttest.TempDir(t), "elsewhere")
	if err := os.Symlink(elsewhere, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	mounttest.MakeDir(t, dir, "dir")
	for _, name := range []string{"link", "dir"} {
		if _, err := safepath.EnsureFile(parent, name, 0o644); err == nil {
			t.Errorf("%s passed for a file", name)
		}
	}
	mounttest.MustNotExist(t, elsewhere)
}
