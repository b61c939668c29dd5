package guest

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

// A test that was killed had an image mounted, and a device that showed a file on it.
func TestLoopDevicesOfATestThatIsGoneAreTakenAway(t *testing.T) {
	mounttest.NeedsRoot(t)
	t.Setenv("TMPDIR", t.TempDir())
	folder, err := newFolder("loops")
	if err != nil {
		t.Fatal(err)
	}
	disk, err := folder.Disk("disk", 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	mounted := filepath.Join(t.TempDir(), "mounted")
	if err := os.Mkdir(mounted, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "mkfs.ext4", "-q", "-F", disk)
	first := run(t, "losetup", "--find", "--show", disk)
	run(t, "mount", first, mounted)
	inner := filepath.Join(mounted, "inner")
	if err := os.WriteFile(inner, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	second := run(t, "losetup", "--find", "--show", inner)
	var before []loop
	for _, path := range []string{first, second} {
		shown, err := lookAt(path)
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, shown)
	}
	if err := unix.Unmount(mounted, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), folder.detachLoops); err != nil {
		t.Fatal(err)
	}
	after, err := attachedLoops()
	if err != nil {
		t.Fatal(err)
	}
	for _, loop := range before {
		if slices.Contains(after, loop) {
			t.Errorf("%s is there", loop.path)
		}
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
