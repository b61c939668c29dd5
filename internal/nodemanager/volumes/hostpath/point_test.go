package hostpath_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// atThePoint is what may be found where a volume is to be mounted: the agent makes a
// directory there to keep a volume for one pod, and a path may have led to something else
// when it was tried before.
var atThePoint = map[string]func(dir string) error{
	"nothing":     func(string) error { return nil },
	"a directory": func(dir string) error { return os.Mkdir(dir, 0o750) },
	"a file":      func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	"a directory, and what an attempt that was cut off left": func(dir string) error {
		return errors.Join(os.Mkdir(dir, 0o750), os.WriteFile(besideOf(dir), nil, 0o600))
	},
	"a file, and what an attempt that was cut off left": func(dir string) error {
		return errors.Join(os.WriteFile(dir, nil, 0o600), os.Mkdir(besideOf(dir), 0o750))
	},
}

func besideOf(dir string) string {
	return filepath.Join(filepath.Dir(dir), ".other-"+filepath.Base(dir))
}

func TestAVolumeIsMountedWhateverItsMountPointWasBefore(t *testing.T) {
	mounttest.NeedsRoot(t)
	host := newHost(t)
	for found, put := range atThePoint {
		for _, name := range []string{"directory", "file", "socket"} {
			t.Run(name+" on "+found, func(t *testing.T) {
				plugin, dir := newPlugin(t)
				if err := put(dir); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := plugin.Publish(t.Context(), ofPod(filepath.Join(host, name), corev1.HostPathUnset), dir); err != nil {
						t.Fatal(err)
					}
				}
				mustBeSame(t, dir, filepath.Join(host, name))
				mustNotExist(t, besideOf(dir))
				if err := plugin.Unpublish(t.Context(), dir); err != nil {
					t.Fatal(err)
				}
				mustNotExist(t, dir)
			})
		}
	}
}

func TestAMountPointExistsAtEveryMomentAsItReservesTheVolume(t *testing.T) {
	mounttest.NeedsRoot(t)
	host := newHost(t)
	plugin, dir := newPlugin(t)
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	over, missed := make(chan struct{}), make(chan int)
	go func() {
		times := 0
		for {
			// By its name only, like the agent: a stat of the file keeps a mount busy.
			if !slices.ContainsFunc(entriesOf(t, filepath.Dir(dir)), func(entry os.DirEntry) bool { return entry.Name() == filepath.Base(dir) }) {
				times++
			}
			select {
			case <-over:
				missed <- times
				return
			default:
			}
		}
	}()
	for range 300 {
		for _, name := range []string{"file", "directory"} {
			if err := plugin.Publish(t.Context(), ofPod(filepath.Join(host, name), corev1.HostPathUnset), dir); err != nil {
				t.Fatal(err)
			}
			if err := mount.UnmountBelow(kernel, dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(over)
	if times := <-missed; times > 0 {
		t.Errorf("it wasn't there %d times", times)
	}
}

func entriesOf(t *testing.T, dir string) []os.DirEntry {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
	}
	return entries
}

func TestWhatLiesInAMountPointStaysThere(t *testing.T) {
	mounttest.NeedsRoot(t)
	host := newHost(t)
	for name, test := range map[string]struct {
		kept  string
		shown string
	}{
		"a directory with a file": {"kept", "file"},
		"a file with data":        {"", "directory"},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, dir := newPlugin(t)
			kept := filepath.Join(dir, test.kept)
			if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o750), os.WriteFile(kept, []byte("hello"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := plugin.Publish(t.Context(), ofPod(filepath.Join(host, test.shown), corev1.HostPathUnset), dir); err == nil {
				t.Error("nothing is said of it")
			}
			if content, err := os.ReadFile(kept); err != nil || string(content) != "hello" {
				t.Errorf("it holds %q (%v)", content, err)
			}
		})
	}
}
