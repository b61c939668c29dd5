package leftovers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// A suite that was killed had an image mounted, and a device that showed a file on it. Of a path
// as long as the folder's the kernel keeps the beginning with the device.
func TestLoopDevicesOfASuiteThatIsGoneAreTakenAway(t *testing.T) {
	mounttest.NeedsRoot(t)
	folder := filepath.Join(t.TempDir(), strings.Repeat("long", 16))
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	disk, mounted := filepath.Join(folder, "disk"), filepath.Join(t.TempDir(), "mounted")
	if err := os.Mkdir(mounted, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "truncate", "--size=64M", disk)
	run(t, "mkfs.ext4", "-q", "-F", disk)
	first := run(t, "losetup", "--find", "--show", disk)
	run(t, "mount", first, mounted)
	inner := filepath.Join(mounted, "inner")
	if err := os.WriteFile(inner, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "losetup", "--find", "--show", inner)
	before, err := loopsOf(folder)
	if err != nil || len(before) != 2 {
		t.Fatalf("there are %v, %v", before, err)
	}
	if err := unix.Unmount(mounted, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if err := Detach(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	after, err := allLoops()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range before {
		if slices.ContainsFunc(after, func(l loop) bool { return l.number == one.number && l.shows == one.shows }) {
			t.Errorf("loop device %d is there", unix.Minor(one.number))
		}
	}
	if _, err := os.Stat(disk); err != nil {
		t.Error(err)
	}
}

func run(t *testing.T, name string, arguments ...string) (output string) {
	t.Helper()
	printed, err := exec.Command(name, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(arguments, " "), err, printed)
	}
	return strings.TrimSpace(string(printed))
}
