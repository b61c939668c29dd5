package container_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/nodemanager/container"
)

func TestADeviceIsKnownByItsNumbersAndAFileIsNone(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: needs root, to make a device")
	}
	device, file := filepath.Join(t.TempDir(), "device"), filepath.Join(t.TempDir(), "file")
	if err := unix.Mknod(device, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 250))); err != nil {
		t.Fatal(err)
	}
	if got, err := container.NumbersOf(device); err != nil || got != (container.Numbers{Major: 7, Minor: 250}) {
		t.Errorf("got %+v (%v)", got, err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := container.NumbersOf(file); err == nil {
		t.Error("a file counts as a device")
	}
}
