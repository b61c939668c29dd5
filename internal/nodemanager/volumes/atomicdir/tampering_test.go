package atomicdir_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/atomicdir"
)

//proves:objects/tampering
func TestWhatAPodSpoiledIsWrittenAnew(t *testing.T) {
	outside := t.TempDir()
	tests := map[string]func(v *volume) error{
		"other data":        func(v *volume) error { return os.WriteFile(v.at("a"), []byte("9"), 0o644) },
		"another mode":      func(v *volume) error { return os.Chmod(v.at("a"), 0o666) },
		"a file too many":   func(v *volume) error { return os.WriteFile(v.at("etc/x"), nil, 0o644) },
		"a file too few":    func(v *volume) error { return os.Remove(v.at("etc/b")) },
		"a folder too many": func(v *volume) error { return os.Mkdir(v.at("..data/x"), 0o755) },
		"a folder too few":  func(v *volume) error { return os.RemoveAll(v.at("..data/gone")) },
		"a pipe": func(v *volume) error {
			return v.replaced("..data/a", func(at string) error { return unix.Mkfifo(at, 0o644) })
		},
		"a symlink outside": func(v *volume) error {
			return v.replaced("..data/a", func(at string) error { return os.Symlink(outside, at) })
		},
		"a folder's symlink": func(v *volume) error {
			return v.replaced("..data/etc", func(at string) error { return os.Symlink(outside, at) })
		},
		"no pointer": func(v *volume) error { return os.Remove(v.at("..data")) },
		"a pointer outside": func(v *volume) error {
			return v.replaced("..data", func(at string) error { return os.Symlink(outside, at) })
		},
		"a pointer upwards": func(v *volume) error {
			return v.replaced("..data", func(at string) error { return os.Symlink("..", at) })
		},
		"a pointer to itself": func(v *volume) error {
			return v.replaced("..data", func(at string) error { return os.Symlink("..data", at) })
		},
		"a folder as pointer": func(v *volume) error {
			return v.replaced("..data", func(at string) error { return os.MkdirAll(at+"/x", 0o755) })
		},
		"no version": func(v *volume) error { return os.RemoveAll(v.at(v.version())) },
		"a file as version": func(v *volume) error {
			return v.replaced(v.version(), func(at string) error { return os.WriteFile(at, nil, 0o644) })
		},
		"a name elsewhere": func(v *volume) error {
			return v.replaced("a", func(at string) error { return os.Symlink(outside, at) })
		},
		"a file as name": func(v *volume) error {
			return v.replaced("a", func(at string) error { return os.WriteFile(at, nil, 0o644) })
		},
		"no name":         func(v *volume) error { return os.Remove(v.at("a")) },
		"a next pointer":  func(v *volume) error { return os.MkdirAll(v.at("..data_tmp/x"), 0o755) },
		"another version": func(v *volume) error { return os.Symlink(outside, v.at("..2030_01_01_00_00_00.1")) },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			v.write(before())
			v.must(spoil(v))
			v.write(before())
			v.mustShow(before())
		})
	}
}

// replaced puts something else in the place of what lies at a path.
func (v *volume) replaced(path string, put func(at string) error) error {
	if err := os.RemoveAll(v.at(path)); err != nil {
		return err
	}
	return put(v.at(path))
}

// swaps is how often the race below swaps something.
const swaps = 5_000

//proves:objects/tampering
func TestWhatAPodSwapsWhileItIsWrittenNeverLeadsOut(t *testing.T) {
	v, outside := newVolume(t), t.TempDir()
	// Names that the writer knows, so that it would find them there.
	for _, path := range []string{"a", "etc/b", "etc/deep/c", "gone/d", "top", "etc/new/e"} {
		v.must(os.MkdirAll(filepath.Dir(filepath.Join(outside, path)), 0o755), os.WriteFile(filepath.Join(outside, path), []byte("kept"), 0o600))
	}
	watched := []string{outside}
	for _, below := range []string{"etc", "gone", "etc/deep", "etc/new"} {
		watched = append(watched, outside+"/"+below)
	}
	watch := watchAll(t, unix.IN_ALL_EVENTS, watched...)
	over := make(chan struct{})
	go func() {
		defer close(over)
		pod := &attacker{volume: v, outside: outside}
		for range swaps {
			pod.swap()
		}
	}()
	writes := 0
	for attacked := true; attacked; {
		// Most fail, as their files are removed at the same time.
		if atomicdir.Write(t.Context(), v.root, before(), nil) == nil {
			writes++
		}
		_ = atomicdir.Write(t.Context(), v.root, after(), nil)
		select {
		case <-over:
			attacked = false
		default:
		}
	}
	if seen := watch.events(t); seen > 0 {
		t.Errorf("something happened outside: %d bytes of events", seen)
	}
	t.Logf("%d of the writes succeeded", writes)
	for _, name := range v.names() {
		if !strings.HasPrefix(name, "..") {
			v.must(v.root.RemoveAll(name))
		}
	}
	v.write(after())
	v.mustShow(after())
}

// attacker is a pod that may write to its volume. It never acts outside itself.
type attacker struct {
	volume  *volume
	outside string
	moved   int
}

// swap moves something in the volume away and puts a symlink to the outside in its place.
func (a *attacker) swap() {
	names, err := fs.ReadDir(a.volume.root.FS(), ".")
	if err != nil || len(names) == 0 {
		return
	}
	below := []string{"", "", "", "a", "etc", "etc/deep", "gone"}[rand.IntN(7)]
	victim, aim := filepath.Join(names[rand.IntN(len(names))].Name(), below), filepath.Join(a.outside, below)
	if relative, err := filepath.Rel(filepath.Dir(a.volume.at(victim)), aim); err == nil && rand.IntN(2) == 0 {
		aim = relative
	}
	a.moved++
	if a.volume.root.Rename(victim, fmt.Sprintf("..aside-%d", a.moved)) == nil {
		_ = a.volume.root.Symlink(aim, victim)
	}
}
