package loopdev

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// shifted is what sysfs has with loop.max_part=7: loop1 is 7:8, and 7:1 is a partition of
// loop0. Both show something.
func shifted(t *testing.T) sysfs {
	t.Helper()
	root := t.TempDir()
	devices := filepath.Join(root, "devices", "virtual", "block")
	for name, number := range map[string]string{"loop0": "7:0", "loop0/loop0p1": "7:1", "loop1": "7:8", "loop1/loop1p1": "7:9", "sda": "8:0"} {
		at := filepath.Join(devices, name)
		if err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "dev"), []byte(number+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		link(t, at, filepath.Join(root, "dev", "block", number))
		if !strings.Contains(name, "/") {
			link(t, at, filepath.Join(root, "block", name))
		}
		if strings.HasPrefix(name, "loop") && !strings.Contains(name, "/") {
			if err := os.Mkdir(filepath.Join(at, "loop"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	link(t, filepath.Join(devices, "loop0"), filepath.Join(root, "block", "loop-control"))
	return sysfs(root)
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(to, at)); err != nil {
		t.Fatal(err)
	}
}

func TestALoopDeviceIsFoundByTheKernelsNumber(t *testing.T) {
	kernel := shifted(t)
	for number, want := range map[string]string{"7:0": "loop0", "7:8": "loop1", "7:1": "", "7:9": "", "7:2": "", "8:0": "", "0:40": ""} {
		if got := kernel.loopAt(number); got != want {
			t.Errorf("%s is %q, want %q", number, got, want)
		}
	}
}

func TestOnlyWholeLoopDevicesAreFound(t *testing.T) {
	names, err := shifted(t).attached()
	if err != nil || !slices.Equal(names, []string{"loop0", "loop1"}) {
		t.Errorf("got %v, %v", names, err)
	}
}

func TestADeviceThatIsNotTheKernelsOfThatNameIsRefused(t *testing.T) {
	kernel := shifted(t)
	if err := kernel.check("loop1", "7:8"); err != nil {
		t.Error(err)
	}
	// What mknod made of the name, where the numbers aren't shifted.
	if err := kernel.check("loop1", "7:1"); err == nil || !strings.Contains(err.Error(), "loop1 is 7:8") {
		t.Errorf("got %v", err)
	}
	if err := kernel.check("loop2", "7:16"); !errors.Is(err, unix.ENXIO) {
		t.Errorf("one that is going away: %v", err)
	}
}

func TestDevicesThatCanNotBeListedAreNotTakenForNone(t *testing.T) {
	for name, spoil := range map[string]func(root string) error{
		"the list": func(root string) error { return os.WriteFile(filepath.Join(root, "block"), nil, 0o600) },
		"one device": func(root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, "block"), 0o700), os.Symlink("loop0", filepath.Join(root, "block", "loop0")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := spoil(root); err != nil {
				t.Fatal(err)
			}
			if names, err := sysfs(root).attached(); err == nil {
				t.Errorf("attached are %v", names)
			}
		})
	}
}
