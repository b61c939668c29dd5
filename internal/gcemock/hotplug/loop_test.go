package hotplug_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

func TestADiskAppearsAsALoopDeviceUnderItsNameAndSerial(t *testing.T) {
	needs(t)
	folder := t.TempDir()
	loops, disk := hotplug.NewLoop(hotplug.Folder(folder)), newDevice(t, "node", "data")
	for range 2 { // a repeat finds it
		attach(t, loops, disk)
	}
	link := linkOf(folder, disk)
	if text := beginning(t, link); text != "I am data" {
		t.Errorf("the device holds %q", text)
	}
	if serial := serialOf(t, link); serial != "data" {
		t.Errorf("its serial is %q", serial)
	}
	target, err := os.Readlink(link)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := loops.Detach(t.Context(), disk); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(link), "serial", "*")); err != nil || len(left) > 0 {
		t.Errorf("serials are left: %v %v", left, err)
	}
	// The number may have gone to another program's file at once.
	shown, err := os.ReadFile("/sys/block/" + filepath.Base(target) + "/loop/backing_file")
	if isThere(link) || err == nil && strings.TrimSpace(string(shown)) == disk.Image {
		t.Errorf("%s or %s is still there", link, target)
	}
}

func TestALoopDeviceGrowsWithItsDisk(t *testing.T) {
	needs(t)
	folder := t.TempDir()
	loops, disk := hotplug.NewLoop(hotplug.Folder(folder)), newDevice(t, "node", "data")
	if err := loops.Resize(t.Context(), disk); err != nil {
		t.Errorf("one that isn't attached: %v", err)
	}
	attach(t, loops, disk)
	if err := os.Truncate(disk.Image, 32*mebibyte); err != nil {
		t.Fatal(err)
	}
	if err := loops.Resize(t.Context(), disk); err != nil {
		t.Fatal(err)
	}
	if size := sizeOf(t, linkOf(folder, disk)); size != 32*mebibyte {
		t.Errorf("it has %d bytes", size)
	}
}

func TestALoopDeviceThatIsUsedStays(t *testing.T) {
	needs(t)
	folder := t.TempDir()
	loops, disk := hotplug.NewLoop(hotplug.Folder(folder)), newDevice(t, "node", "data")
	attach(t, loops, disk)
	user, err := os.Open(linkOf(folder, disk))
	if err != nil {
		t.Fatal(err)
	}
	if err := loops.Detach(t.Context(), disk); !errors.Is(err, hotplug.ErrInUse) {
		t.Errorf("got %v", err)
	}
	user.Close()
	if text := beginning(t, linkOf(folder, disk)); text != "I am data" {
		t.Errorf("once its user is gone it holds %q", text)
	}
}

func TestReadersShareAReadOnlyLoopDevice(t *testing.T) {
	needs(t)
	folder := t.TempDir()
	loops, one := hotplug.NewLoop(hotplug.Folder(folder)), newDevice(t, "one", "data")
	one.ReadOnly = true
	two := one
	two.Instance = "two"
	attach(t, loops, one)
	attach(t, loops, two)
	if file, err := os.OpenFile(linkOf(folder, two), os.O_WRONLY, 0); err == nil {
		_, err = file.WriteString("x")
		if err == nil {
			err = file.Sync()
		}
		file.Close()
		if err == nil {
			t.Error("it was written to")
		}
	}
	if err := loops.Detach(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if text := beginning(t, linkOf(folder, two)); text != "I am data" || isThere(linkOf(folder, one)) {
		t.Errorf("the other reader sees %q", text)
	}
}

func beginning(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text := make([]byte, len("I am data"))
	if _, err := io.ReadFull(file, text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	return size
}
