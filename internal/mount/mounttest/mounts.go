package mounttest

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Bind mounts source at target, and unmounts everything there at the end.
func Bind(t *testing.T, source, target string, access mount.Access) {
	t.Helper()
	if err := (mount.Kernel{}).Bind(Open(t, source), target, access); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mount.UnmountBelow(mount.Kernel{}, target); err != nil {
			t.Error(err)
		}
	})
}

// Unmount unmounts the topmost mount at path.
func Unmount(t *testing.T, path string) {
	t.Helper()
	if err := (mount.Kernel{}).Unmount(path); err != nil {
		t.Error(err)
	}
}

// TableOf is what is mounted now.
func TableOf(t *testing.T) mount.Table {
	t.Helper()
	table, err := (mount.Kernel{}).Table()
	if err != nil {
		t.Fatal(err)
	}
	return table
}
