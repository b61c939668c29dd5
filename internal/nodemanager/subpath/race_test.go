package subpath_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/subpath"
)

// A component is swapped for a symlink this often at least, and a part shown and taken
// away.
const (
	swaps  = 20_000
	rounds = 500
)

//proves:every/subPath-symlinks
func TestAVolumeWhosePartsAreSwappedForSymlinksNeverLeadsOut(t *testing.T) {
	tests := map[string]struct {
		swapped, path string
		made          []string
	}{
		"the last component":                {"a/b/c", "a/b/c", nil},
		"a component in the middle":         {"a/b", "a/b/c", nil},
		"the parent of one that is missing": {"a/b", "a/b/new", []string{"a/b/new", "link/new"}},
		"the top of one that is missing":    {"a", "a/new/deep", []string{"a/new/deep", "link/new/deep", "a/new", "link/new"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			at := newPlace(t)
			outside := filepath.Join(filepath.Dir(at.volume), "outside")
			at.must(os.MkdirAll(filepath.Join(at.volume, "a", "b", "c"), 0o777), os.MkdirAll(filepath.Join(outside, "b", "c"), 0o777))
			for _, dir := range []string{"", "b", "b/c"} {
				at.must(os.WriteFile(filepath.Join(outside, dir, "canary"), nil, 0o600))
			}
			before := tree(t, outside)
			swapped, link := filepath.Join(at.volume, test.swapped), filepath.Join(at.volume, "link")
			at.must(os.Symlink(outside, link))
			inside, err := os.OpenRoot(at.volume)
			at.must(err)
			defer inside.Close()
			enough, done := make(chan struct{}), make(chan error, 1)
			go func() { done <- swap(swapped, link, enough) }()
			shown := at.race(at.part(test.path), func() {
				for _, made := range test.made { // to be made again
					_ = inside.Remove(made)
				}
			})
			close(enough)
			at.must(<-done)
			if shown == 0 {
				t.Error("nothing was ever mounted: the race tells nothing")
			}
			if after := tree(t, outside); after != before {
				t.Errorf("outside there was %s, and now is %s", before, after)
			}
			at.remove()
		})
	}
}

// swap swaps two names with each other, over and over, until it is enough.
func swap(one, other string, enough <-chan struct{}) error {
	for done := 0; ; done++ {
		select {
		case <-enough:
			if done >= swaps {
				return nil
			}
		default:
		}
		if err := unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE); err != nil {
			return err
		}
	}
}

// race shows a part and takes it away again, and counts how often it was shown.
func (p place) race(part subpath.Part, again func()) (shown int) {
	p.t.Helper()
	volume := mounttest.Open(p.t, p.volume)
	for range rounds {
		if subpath.Mount(mount.Kernel{}, volume, part) == nil {
			shown++
			if _, err := os.Lstat(filepath.Join(part.Target, "canary")); err == nil {
				p.t.Fatal("the outside is mounted")
			}
		}
		p.must(subpath.Remove(mount.Kernel{}, p.folder))
		again()
	}
	return shown
}

// tree is the names of all that lies in a directory.
func tree(t *testing.T, dir string) string {
	t.Helper()
	names := ""
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names += path + "\n"
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
