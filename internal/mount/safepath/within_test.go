package safepath_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

func TestSymlinksAreFollowedAsLongAsTheyStayWithin(t *testing.T) {
	base := mounttest.TempDir(t)
	volume := mounttest.MakeDir(t, base, "volume")
	mounttest.WriteFile(t, mounttest.MakeDir(t, volume, "..v1"), "key", "")
	mounttest.MakeDir(t, base, "outside")
	links := map[string]string{"..data": "..v1", "key": "..data/key", "up": "../outside", "root": base + "/outside", "nowhere": "missing", "self": "self"}
	for link, to := range links {
		if err := os.Symlink(to, filepath.Join(volume, link)); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]error{
		".":          nil,
		"key":        nil,
		"..data/key": nil,
		"up":         safepath.ErrOutside,
		"root":       safepath.ErrOutside,
		"../outside": safepath.ErrOutside,
		"/":          safepath.ErrOutside,
		"":           safepath.ErrOutside,
		"nowhere":    os.ErrNotExist,
		"missing":    os.ErrNotExist,
		"self":       unix.ELOOP,
		"key/below":  unix.ENOTDIR,
	}
	for path, want := range tests {
		t.Run(path, func(t *testing.T) {
			file, err := safepath.OpenWithin(mounttest.Open(t, volume), path)
			if err == nil {
				file.Close()
			}
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

func TestWhatIsMissingIsMadeWithItsModeAndItsParentsGroup(t *testing.T) {
	mounttest.NeedsRoot(t)
	const group = 4711
	base := mounttest.TempDir(t)
	defer unix.Umask(unix.Umask(0o077))
	if err := errors.Join(os.Chown(base, 0, group), os.Chmod(base, 0o775|os.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		made, err := safepath.EnsureWithin(mounttest.Open(t, base), "logs/today", 0o775)
		if err != nil {
			t.Fatal(err)
		}
		made.Close()
	}
	for _, path := range []string{"logs", "logs/today"} {
		var stat unix.Stat_t
		if err := unix.Stat(filepath.Join(base, path), &stat); err != nil || stat.Mode != unix.S_IFDIR|unix.S_ISGID|0o775 || stat.Gid != group {
			t.Errorf("%s has mode %o and group %d (%v)", path, stat.Mode, stat.Gid, err)
		}
	}
	if mask := unix.Umask(0o077); mask != 0o077 {
		t.Errorf("the umask of the process became %o", mask)
	}
}

func TestNothingIsMadeThroughASymlinkThatLeadsOutOrNowhere(t *testing.T) {
	base := mounttest.TempDir(t)
	volume, outside := mounttest.MakeDir(t, base, "volume"), mounttest.MakeDir(t, base, "outside")
	for link, to := range map[string]string{"out": outside, "nowhere": "missing"} {
		if err := os.Symlink(to, filepath.Join(volume, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"out/new", "nowhere", "nowhere/new", "../outside/new"} {
		if made, err := safepath.EnsureWithin(mounttest.Open(t, volume), path, 0o750); err == nil {
			made.Close()
			t.Errorf("%s was made", path)
		}
	}
	mounttest.MustNotExist(t, filepath.Join(outside, "new"))
	mounttest.MustNotExist(t, filepath.Join(volume, "missing"))
}
