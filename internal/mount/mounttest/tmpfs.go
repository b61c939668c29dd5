package mounttest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Tmpfs mounts an empty file system at a folder until the test ends, also where tests
// have no mount namespace of their own.
func Tmpfs(t *testing.T, folder string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it mounts")
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=64m,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
