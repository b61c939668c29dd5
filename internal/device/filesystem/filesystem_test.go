package filesystem_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	utilexec "k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/devicetest"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// smallest is how much a type of file system needs.
var smallest = map[string]int64{"ext4": 8 * devicetest.Mebibyte, "xfs": 300 * devicetest.Mebibyte}

func TestAFileSystemIsMadeInAnImageWithoutALoopDevice(t *testing.T) {
	for fsType, size := range smallest {
		t.Run(fsType, func(t *testing.T) {
			devicetest.Needs(t, "mkfs."+fsType)
			image := devicetest.NewImage(t, size)
			if err := devicetest.FileSystems.Format(t.Context(), device.PathOf(image), fsType, size); err != nil {
				t.Fatal(err)
			}
			if found, err := devicetest.FileSystems.Probe(t.Context(), image.Name()); found != fsType || err != nil {
				t.Errorf("it holds %q (%v)", found, err)
			}
		})
	}
}

func TestAFileSystemIsMadeOnADeviceAndMounted(t *testing.T) {
	mounttest.NeedsRoot(t)
	for fsType, size := range smallest {
		t.Run(fsType, func(t *testing.T) {
			devicetest.Needs(t, "mkfs."+fsType)
			loop := devicetest.Attach(t, devicetest.NewImage(t, size), loopdev.ForFileSystem)
			if err := devicetest.FileSystems.Format(t.Context(), loop.Path(), fsType, size); err != nil {
				t.Fatal(err)
			}
			devicetest.MountAt(t, loop.Path(), fsType)
		})
	}
}

func TestWhatHoldsAnythingIsNeverFormatted(t *testing.T) {
	devicetest.Needs(t, "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs")
	for name, put := range map[string]struct {
		size int64
		by   func(path string) error
	}{
		"ext4":       {16 * devicetest.Mebibyte, func(path string) error { return exec.Command("mkfs.ext4", "-q", path).Run() }},
		"xfs":        {300 * devicetest.Mebibyte, func(path string) error { return exec.Command("mkfs.xfs", "-q", path).Run() }},
		"btrfs":      {128 * devicetest.Mebibyte, func(path string) error { return exec.Command("mkfs.btrfs", "-q", path).Run() }},
		"swap":       {16 * devicetest.Mebibyte, func(path string) error { return exec.Command("mkswap", path).Run() }},
		"partitions": {16 * devicetest.Mebibyte, partition},
	} {
		t.Run(name, func(t *testing.T) {
			image := devicetest.NewImage(t, put.size)
			if err := put.by(image.Name()); err != nil {
				t.Fatal(err)
			}
			before := headOf(t, image)
			if err := devicetest.FileSystems.Format(t.Context(), image.Name(), "ext4", put.size); !errors.Is(err, device.ErrFormatted) {
				t.Errorf("got %v", err)
			}
			if headOf(t, image) != before {
				t.Error("it was written")
			}
		})
	}
}

func TestWhatCanNotBeReadIsNotTakenForEmpty(t *testing.T) {
	devicetest.Needs(t, "blkid", "mkfs.ext4")
	missing := filepath.Join(t.TempDir(), "missing")
	if found, err := devicetest.FileSystems.Probe(t.Context(), missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it holds %q (%v)", found, err)
	}
	if err := devicetest.FileSystems.Format(t.Context(), missing, "ext4", 16*devicetest.Mebibyte); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyWhatCanBeMadeIsTried(t *testing.T) {
	for name, test := range map[string]struct {
		fsType string
		bytes  int64
		exec   utilexec.Interface
		want   error
		text   string
	}{
		"another type":      {"btrfs", 1 << 40, utilexec.New(), device.ErrUnknownType, "use ext4 or xfs"},
		"ext4, too small":   {"ext4", smallest["ext4"] - 1, utilexec.New(), device.ErrTooSmall, "ext4 needs at least 8Mi"},
		"xfs, too small":    {"xfs", smallest["xfs"] - 1, utilexec.New(), device.ErrTooSmall, "xfs needs at least 300Mi"},
		"ext4, not on node": {"ext4", 1 << 40, without{"mkfs.ext4"}, device.ErrNoTool, "mkfs.ext4 isn't installed on this node (Debian's package e2fsprogs"},
		"xfs, half there":   {"xfs", 1 << 40, without{"xfs_growfs"}, device.ErrNoTool, "Debian's package xfsprogs"},
		"no blkid":          {"xfs", 1 << 40, without{"blkid"}, device.ErrNoTool, "Debian's package util-linux"},
	} {
		t.Run(name, func(t *testing.T) {
			err := filesystem.NewFileSystems(test.exec).CheckType(test.fsType, test.bytes)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAFaultIsRepairedOrReportedBeforeAFileSystemIsMounted(t *testing.T) {
	devicetest.Needs(t, "mkfs.ext4", "debugfs")
	image := devicetest.NewImage(t, 16*devicetest.Mebibyte)
	path := image.Name()
	if err := devicetest.FileSystems.Format(t.Context(), path, "ext4", 16*devicetest.Mebibyte); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, commands string
		want           error
	}{
		{"no fault", "stats", nil},
		{"a count that is wrong", "ssv state 0\nssv free_blocks_count 1", nil},
		{"no top directory", "ssv state 0\nclri <2>", device.ErrDamaged},
	} {
		damage := exec.Command("debugfs", "-w", "-f", "-", path)
		damage.Stdin = strings.NewReader(test.commands + "\n")
		if output, err := damage.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		if err := devicetest.FileSystems.Check(t.Context(), path, "ext4"); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
}

func TestAMountedFileSystemGrowsToTheSizeOfItsDevice(t *testing.T) {
	mounttest.NeedsRoot(t)
	for fsType, size := range smallest {
		t.Run(fsType, func(t *testing.T) {
			devicetest.Needs(t, "mkfs."+fsType)
			needsGrowth(t, fsType)
			image := devicetest.NewImage(t, size)
			if err := devicetest.FileSystems.Format(t.Context(), device.PathOf(image), fsType, size); err != nil {
				t.Fatal(err)
			}
			loop := devicetest.Attach(t, image, loopdev.ForFileSystem)
			target := devicetest.MountAt(t, loop.Path(), fsType)
			if err := loopdev.Allocate(image, 2*size); err != nil {
				t.Fatal(err)
			}
			if err := loop.Resize(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := devicetest.FileSystems.Grow(t.Context(), loop.Path(), target, fsType); err != nil {
					t.Fatal(err)
				}
			}
			var space unix.Statfs_t
			if err := unix.Statfs(target, &space); err != nil || int64(space.Blocks)*space.Frsize <= size {
				t.Errorf("it has %d blocks (%v)", space.Blocks, err)
			}
		})
	}
}

func TestAnUnmountedFileSystemGrowsWithoutPrivileges(t *testing.T) {
	mounttest.NeedsRoot(t)
	devicetest.Needs(t, "mkfs.ext4", "resize2fs")
	image := devicetest.NewImage(t, 16*devicetest.Mebibyte)
	loop := devicetest.Attach(t, image, loopdev.ForFileSystem)
	if err := devicetest.FileSystems.Format(t.Context(), loop.Path(), "ext4", 16*devicetest.Mebibyte); err != nil {
		t.Fatal(err)
	}
	earlier := devicetest.MountAt(t, loop.Path(), "ext4")
	write := os.WriteFile(filepath.Join(earlier, "kept"), []byte("data"), 0o600)
	if err := errors.Join(write, unix.Unmount(earlier, 0), loopdev.Allocate(image, 64*devicetest.Mebibyte), loop.Resize()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := devicetest.FileSystems.GrowBeforeMount(t.Context(), loop.Path(), "ext4"); err != nil {
			t.Fatal(err)
		}
	}
	target := devicetest.MountAt(t, loop.Path(), "ext4")
	if err := devicetest.FileSystems.Grow(t.Context(), loop.Path(), target, "ext4"); err != nil {
		t.Errorf("growing what is as large as its device: %v", err)
	}
	var space unix.Statfs_t
	if err := unix.Statfs(target, &space); err != nil || int64(space.Blocks)*space.Frsize < 40*devicetest.Mebibyte {
		t.Errorf("it has %d blocks (%v)", space.Blocks, err)
	}
	if kept, err := os.ReadFile(filepath.Join(target, "kept")); string(kept) != "data" {
		t.Errorf("the file says %q (%v)", kept, err)
	}
}

func TestGrowthIsRefusedOnlyForWantOfAPrivilegeThatTheErrorNames(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, 16*devicetest.Mebibyte)
	loop := devicetest.Attach(t, image, loopdev.ForFileSystem)
	if err := devicetest.FileSystems.Format(t.Context(), loop.Path(), "ext4", 16*devicetest.Mebibyte); err != nil {
		t.Fatal(err)
	}
	target := devicetest.MountAt(t, loop.Path(), "ext4")
	if err := errors.Join(loopdev.Allocate(image, 64*devicetest.Mebibyte), loop.Resize()); err != nil {
		t.Fatal(err)
	}
	err := devicetest.FileSystems.Grow(t.Context(), loop.Path(), target, "ext4")
	if refused := err != nil && strings.Contains(err.Error(), "CAP_SYS_RESOURCE"); refused == isPrivileged(t) || err != nil && !refused {
		t.Errorf("got %v", err)
	}
}

// needsGrowth skips a test whose file system this process can't grow.
func needsGrowth(t *testing.T, fsType string) {
	t.Helper()
	if fsType == "ext4" && !isPrivileged(t) {
		t.Skip("NOT RUN: growing a mounted ext4 needs CAP_SYS_RESOURCE, which this machine's root hasn't got")
	}
}

func isPrivileged(t *testing.T) bool {
	t.Helper()
	data := [2]unix.CapUserData{}
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
		t.Fatal(err)
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

func TestAProgramIsKilledWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	image, started := devicetest.NewImage(t, 16*devicetest.Mebibyte), filepath.Join(t.TempDir(), "started")
	if err := unix.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		ended <- filesystem.NewFileSystems(instead("echo $$ >"+started+"; exec sleep 1000")).Check(ctx, image.Name(), "ext4")
	}()
	id, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(id))); !os.IsNotExist(err) {
		t.Errorf("it runs still (%v)", err)
	}
}

func TestAProgramThatCanNotBeStartedFindsNoDamage(t *testing.T) {
	image := devicetest.NewImage(t, 16*devicetest.Mebibyte)
	err := filesystem.NewFileSystems(instead("exit 127")).Check(t.Context(), image.Name(), "ext4")
	if err == nil || errors.Is(err, device.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

func TestWhatAProgramSaysIsCutToItsEnd(t *testing.T) {
	image := devicetest.NewImage(t, 16*devicetest.Mebibyte)
	wordy := filesystem.NewFileSystems(instead("yes | head -c 100000; echo the cause; exit 8"))
	err := wordy.Check(t.Context(), image.Name(), "ext4")
	if err == nil || len(err.Error()) > 1000 || !strings.HasSuffix(err.Error(), "the cause") {
		t.Errorf("got %v", err)
	}
}

func TestADiskKeepsRoomForAllOfAFileOrLeavesItAsItWas(t *testing.T) {
	mounttest.NeedsRoot(t)
	devicetest.Needs(t, "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs")
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			disk := devicetest.NewImage(t, 320*devicetest.Mebibyte)
			if output, err := exec.Command("mkfs."+fsType, "-q", disk.Name()).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			path := devicetest.MountAt(t, devicetest.Attach(t, disk, loopdev.ForFileSystem).Path(), fsType)
			file, err := os.Create(filepath.Join(path, "image"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if err := loopdev.WriteInPlace(file); err != nil {
				t.Fatal(err)
			}
			if err := loopdev.Allocate(file, 32*devicetest.Mebibyte); err != nil {
				t.Fatal(err)
			}
			if err := loopdev.Allocate(file, 1<<30); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("got %v", err)
			}
			var stat unix.Stat_t
			if err := unix.Fstat(int(file.Fd()), &stat); err != nil || stat.Size != 32*devicetest.Mebibyte || stat.Blocks*512 > 40*devicetest.Mebibyte {
				t.Errorf("it has %d bytes and takes up %d (%v)", stat.Size, stat.Blocks*512, err)
			}
		})
	}
}

// headOf is the beginning of an image, in which every file system writes.
func headOf(t *testing.T, image *os.File) string {
	t.Helper()
	head := make([]byte, devicetest.Mebibyte)
	if _, err := image.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	return string(head)
}

// partition writes the end of a master boot record with one partition.
func partition(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	entry := []byte{0x80, 1, 1, 0, 0x83, 0xfe, 0xff, 0xff, 0, 8, 0, 0, 0, 0, 8, 0}
	if _, err := file.WriteAt(entry, 446); err != nil {
		return err
	}
	_, err = file.WriteAt([]byte{0x55, 0xaa}, 510)
	return err
}

// without is a node on which one program is missing.
type without struct{ program string }

func (w without) Command(string, ...string) utilexec.Cmd { return nil }

func (w without) CommandContext(context.Context, string, ...string) utilexec.Cmd { return nil }

func (w without) LookPath(name string) (string, error) {
	if name == w.program {
		return "", utilexec.ErrExecutableNotFound
	}
	return "/usr/sbin/" + name, nil
}

// instead is a script that runs whatever is to be run.
type instead string

func (i instead) Command(string, ...string) utilexec.Cmd { return nil }

func (i instead) CommandContext(ctx context.Context, _ string, _ ...string) utilexec.Cmd {
	return utilexec.New().CommandContext(ctx, "sh", "-c", string(i))
}

func (instead) LookPath(name string) (string, error) { return name, nil }
