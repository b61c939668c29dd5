package clouddisk_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/devicetest"
)

// signatures are what a disk in use may contain.
var signatures = map[string]func(path string) error{
	"a LUKS header":       put("LUKS\xba\xbe\x00\x02", 0),
	"a partition table":   put("\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x83\x00\x08\x00\x00\x08\x00\x00\x00\x08\x00\x00", 440, "\x55\xaa", 510),
	"an LVM label":        put("LABELONE\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x20\x00\x00\x00LVM2 001", 512),
	"a database":          put("a database without a file system", 1<<20),
	"a note at the end":   put("a note", 16*devicetest.Mebibyte-100),
	"another file system": func(path string) error { return exec.Command("mkfs.ext4", "-q", path).Run() },
}

// put writes texts at offsets.
func put(text string, at int64, more ...any) func(string) error {
	return func(path string) error {
		disk, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = disk.WriteAt([]byte(text), at)
		if len(more) == 2 {
			_, second := disk.WriteAt([]byte(more[0].(string)), int64(more[1].(int)))
			err = errors.Join(err, second)
		}
		return errors.Join(err, disk.Sync(), disk.Close())
	}
}

func TestADiskThatHoldsAnythingIsNotEmpty(t *testing.T) {
	devicetest.Needs(t, "mkfs.ext4", "mkfs.xfs", "blkid")
	for name, sign := range signatures {
		c := newCloud(t)
		c.attach("data")
		path := c.open("data", "data").Path()
		if err := sign(path); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(c.disk("data").Image)
		if err != nil {
			t.Fatal(err)
		}
		if err := devicetest.FileSystems.CheckEmpty(t.Context(), path); !errors.Is(err, device.ErrFormatted) {
			t.Errorf("%s: got %v", name, err)
		}
		if after, err := os.ReadFile(c.disk("data").Image); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: it was changed (%v)", name, err)
		}
	}
}

func TestAnEmptyDiskIsFormattedAndHalfOfThatMadeAnew(t *testing.T) {
	devicetest.Needs(t, "mkfs.ext4", "mkfs.xfs", "blkid")
	for _, fsType := range []string{"ext4", "xfs"} {
		c := newCloud(t)
		disk := c.disk("data")
		if err := errors.Join(os.WriteFile(disk.Image, nil, 0o600), os.Truncate(disk.Image, 320*devicetest.Mebibyte)); err != nil {
			t.Fatal(err)
		}
		c.attach("data")
		path := c.open("data", "data").Path()
		if err := devicetest.FileSystems.CheckEmpty(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if err := devicetest.FileSystems.Format(t.Context(), path, fsType, 320*devicetest.Mebibyte); err != nil {
			t.Fatal(err)
		}
		if err := devicetest.FileSystems.Remake(t.Context(), path, fsType, 320*devicetest.Mebibyte); err != nil {
			t.Fatal(err)
		}
		if found, err := devicetest.FileSystems.Probe(t.Context(), path); found != fsType || err != nil {
			t.Errorf("it holds %q (%v)", found, err)
		}
	}
}

func TestADiskOfNoBytesIsNotTakenForEmpty(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := devicetest.FileSystems.CheckEmpty(t.Context(), none); err == nil {
		t.Error("it counts as empty")
	}
}
