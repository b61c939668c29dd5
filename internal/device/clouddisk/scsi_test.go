package clouddisk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
)

// scsiDebug is the folder of the kernel's own SCSI disk for tests.
const scsiDebug = "/sys/bus/pseudo/drivers/scsi_debug"

// scsiDisk returns the path of a SCSI disk, and the folder of its host in /sys.
func scsiDisk(t *testing.T) (path, host string) {
	t.Helper()
	if _, err := os.Stat(scsiDebug); err != nil {
		t.Skip("NOT RUN: this kernel has no disk of module scsi_debug")
	}
	disks, err := filepath.Glob(scsiDebug + "/adapter0/host*/target*/*/block/sd*")
	if err != nil || len(disks) != 1 {
		t.Fatalf("it has %v (%v)", disks, err)
	}
	return "/dev/" + filepath.Base(disks[0]), filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(disks[0]))))
}

// linkTo makes a folder in which a device has a name.
func linkTo(t *testing.T, path, name string) clouddisk.DiskFolder {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(path, filepath.Join(folder, "google-"+name)); err != nil {
		t.Fatal(err)
	}
	return clouddisk.DiskFolder{Path: folder, Serials: clouddisk.HardwareSerials{}}
}

func TestTheSerialOfAScsiDiskIsInItsPage(t *testing.T) {
	path, _ := scsiDisk(t)
	finder, serial := linkTo(t, path, "data"), serialOf(t, path)
	disk, err := finder.Open("data", serial)
	if err != nil {
		t.Fatal(err)
	}
	disk.Close()
	if _, err := finder.Open("data", "another"); !errors.Is(err, clouddisk.ErrOtherDisk) || !strings.Contains(err.Error(), serial) {
		t.Errorf("as another disk it gave %v", err)
	}
}

func TestAScsiDiskIsAskedForItsSize(t *testing.T) {
	path, _ := scsiDisk(t)
	disk, err := linkTo(t, path, "data").Open("data", serialOf(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	before := disk.DiskIdentity
	pretend(t, "1")
	defer pretend(t, "0")
	if err := disk.Rescan(); err != nil {
		t.Fatal(err)
	}
	if size, err := disk.Size(); err != nil || size != 1<<30 {
		t.Errorf("it has %d bytes (%v)", size, err)
	}
	if there, err := before.IsThere(); !there || err != nil {
		t.Errorf("with another size it counts as another disk: %v", err)
	}
}

// pretend makes SCSI disks report so many GiB; 0: their own size.
func pretend(t *testing.T, gibibytes string) {
	t.Helper()
	if err := os.WriteFile(scsiDebug+"/virtual_gb", []byte(gibibytes), 0); err != nil {
		t.Fatal(err)
	}
}

func serialOf(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile("/sys/class/block/" + filepath.Base(path) + "/device/vpd_pg80")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(page[4:]))
}

func TestAScsiDiskThatWasRemovedIsNotThere(t *testing.T) {
	path, host := scsiDisk(t)
	disk, err := linkTo(t, path, "data").Open("data", serialOf(t, path))
	if err != nil {
		t.Fatal(err)
	}
	before := disk.DiskIdentity
	disk.Close()
	takeAway(t, path)
	defer plugBackIn(t, host)
	if there, err := before.IsThere(); there || err != nil {
		t.Errorf("it is still there (%v)", err)
	}
	if _, err := clouddisk.DiskAt(before); !errors.Is(err, clouddisk.ErrNoDisk) {
		t.Errorf("opening it gave %v", err)
	}
}

// takeAway removes a disk as a cloud does that detaches it by force.
func takeAway(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile("/sys/block/"+filepath.Base(path)+"/device/delete", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
}

func plugBackIn(t *testing.T, host string) {
	t.Helper()
	scan := "/sys/class/scsi_host/" + filepath.Base(host) + "/scan"
	if err := os.WriteFile(scan, []byte("- - -"), 0); err != nil {
		t.Fatal(err)
	}
}
