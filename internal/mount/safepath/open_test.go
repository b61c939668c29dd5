package safepath_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

func TestOnlyDirectoriesBelowTheBaseAreOpened(t *testing.T) {
	dir := mounttest.TempDir(t)
	base := mounttest.MakeDir(t, dir, "base")
	mounttest.MakeDir(t, base, "a", "b")
	mounttest.MakeDir(t, dir, "outside", "b")
	mounttest.WriteFile(t, base, "file", "")
	for link, to := range map[string]string{"out": filepath.Join(dir, "outside"), "in": "a", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]error{
		"":             nil,
		"a":            nil,
		"a/b":          nil,
		"missing":      os.ErrNotExist,
		"file":         unix.ENOTDIR,
		"out":          safepath.ErrOutside,
		"out/b":        safepath.ErrOutside,
		"in/b":         safepath.ErrOutside,
		"up":           safepath.ErrOutside,
		"../outside":   safepath.ErrOutside,
		"..":           safepath.ErrOutside,
		"../base2":     safepath.ErrOutside,
		"a/../../base": nil,
	}
	for path, want := range tests {
		t.Run(path, func(t *testing.T) {
			file, err := safepath.OpenBeneath(base, filepath.Join(base, path))
			if err == nil {
				file.Close()
			}
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if _, err := safepath.ListBeneath(base, filepath.Join(base, path)); !errors.Is(err, want) {
				t.Errorf("to list it gave %v, want %v", err, want)
			}
		})
	}
}

func TestTheNamesInADirectoryAreListedInOrder(t *testing.T) {
	base := mounttest.TempDir(t)
	for _, name := range []string{"c", "a", "b"} {
		mounttest.WriteFile(t, base, name, "")
	}
	names, err := safepath.ListBeneath(base, base)
	if err != nil || !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("listed is %q (%v)", names, err)
	}
}

func TestADirectoryThatIsSwappedForASymlinkNeverLeadsOut(t *testing.T) {
	const swaps = 2000
	dir := mounttest.TempDir(t)
	base := mounttest.MakeDir(t, dir, "base")
	mounttest.MakeDir(t, base, "volume", "here")
	mounttest.MakeDir(t, dir, "outside", "there")
	if err := os.Symlink(filepath.Join(dir, "outside"), filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		for range swaps {
			err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(base, "volume"), unix.AT_FDCWD, filepath.Join(base, "link"), unix.RENAME_EXCHANGE)
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for opened := 0; ; opened++ {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
		file, err := safepath.OpenBeneath(base, filepath.Join(base, "volume"))
		if err != nil {
			continue
		}
		if inside, err := safepath.OpenAt(file, "there"); err == nil {
			inside.Close()
			t.Fatal("the outside was opened")
		}
		file.Close()
	}
}

func TestADirectoryIsMadeWithItsModeOrNotAtAll(t *testing.T) {
	base := mounttest.TempDir(t)
	defer unix.Umask(unix.Umask(0o077))
	parent := mounttest.Open(t, base)
	// What a crash between making the directory and setting its mode leaves.
	mounttest.MakeDir(t, base, ".new-volume")

	for range 2 {
		if err := safepath.EnsureDir(parent, "volume", 0o777); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(base, "volume"))
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("got mode %v (%v)", info.Mode(), err)
	}
	mounttest.MustNotExist(t, filepath.Join(base, ".new-volume"))
}

func TestADirectoryIsMadeBySeveralAtOnce(t *testing.T) {
	for range 50 {
		parent := mounttest.Open(t, mounttest.TempDir(t))
		results := make(chan error)
		for range 4 {
			go func() { results <- safepath.EnsureDir(parent, "shared", 0o700) }()
		}
		for range 4 {
			if err := <-results; err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDirectoriesAreMadeAndRemovedOnTheOldestKernel(t *testing.T) {
	base := mounttest.TempDir(t)
	parent := mounttest.Open(t, base)
	err := mounttest.NewerThanLinux512.Under(t, func() error {
		if err := safepath.EnsureDir(parent, "volume", 0o777); err != nil {
			return err
		}
		if err := safepath.SyncDir(parent); err != nil {
			return err
		}
		deleting, err := filetree.Retire(parent, "volume")
		if err != nil {
			return err
		}
		defer deleting.Close()
		return filetree.RemoveTree(t.Context(), deleting, "volume")
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAnUnfinishedDirectoryThatWasSwappedForASymlinkKeepsItsModeToItself(t *testing.T) {
	base := mounttest.TempDir(t)
	outside := mounttest.MakeDir(t, base, "outside")
	if err := os.Symlink(outside, filepath.Join(base, ".new-volume")); err != nil {
		t.Fatal(err)
	}
	if err := safepath.EnsureDir(mounttest.Open(t, base), "volume", 0o777); !errors.Is(err, safepath.ErrOutside) {
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the outside has mode %v (%v)", info.Mode(), err)
	}
}

func TestADirectoryIsNotMadeWhereAFileOrASymlinkIs(t *testing.T) {
	base := mounttest.TempDir(t)
	mounttest.WriteFile(t, base, "file", "kept")
	if err := os.Symlink(mounttest.MakeDir(t, base, "dir"), filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "link"} {
		if err := safepath.EnsureDir(mounttest.Open(t, base), name, 0o777); err == nil {
			t.Errorf("%s counts as a directory", name)
		}
	}
	mounttest.MustHold(t, filepath.Join(base, "file"), "kept")
}

// Renames anywhere on a machine can keep the kernel from being sure of a path.
func TestAPathThatTheKernelIsNeverSureOfIsAnErrorInTheEnd(t *testing.T) {
	base := mounttest.TempDir(t)
	unsure := mounttest.Refusal{First: unix.SYS_OPENAT2, Last: unix.SYS_OPENAT2, Errno: unix.EAGAIN}
	err := unsure.Under(t, func() error {
		_, err := safepath.OpenBeneath(base, base)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "renames directories all the time") {
		t.Errorf("got %v", err)
	}
}
