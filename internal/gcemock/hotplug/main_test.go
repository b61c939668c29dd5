package hotplug_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

const (
	mebibyte = 1 << 20
	project  = "demo"
	zone     = "europe-west3-a"
)

// needs skips a test that can't be run here, so that it is seen.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: only root attaches devices")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: %s is missing: install user-mode-linux and gcc", program)
		}
	}
}

// newDevice makes a disk with a text at its beginning, for an instance.
func newDevice(t *testing.T, instance, name string) hotplug.Device {
	t.Helper()
	device := hotplug.Device{
		Project: project, Zone: zone, Instance: instance, Name: name, Image: filepath.Join(t.TempDir(), name+".img"),
	}
	if err := os.WriteFile(device.Image, []byte("I am "+name), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(device.Image, 16*mebibyte); err != nil {
		t.Fatal(err)
	}
	return device
}

// linkOf is where an instance finds a device.
func linkOf(folder string, device hotplug.Device) string {
	return filepath.Join(folder, device.Project, device.Zone, device.Instance, "google-"+device.Name)
}

// serialOf is the recorded serial of the device that a link leads to.
func serialOf(t *testing.T, link string) string {
	t.Helper()
	target, err := os.Readlink(link)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := os.ReadFile(filepath.Join(filepath.Dir(link), "serial", filepath.Base(target)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(serial))
}

// attach attaches a device; it is detached when the test ends.
func attach(t *testing.T, attacher hotplug.Attacher, device hotplug.Device) {
	t.Helper()
	if err := attacher.Attach(t.Context(), device); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := attacher.Detach(context.Background(), device); err != nil {
			t.Error(err)
		}
	})
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
