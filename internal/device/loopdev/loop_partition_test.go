package loopdev_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/devicetest"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// partitioned attaches an image, has the kernel show a part of the device as a partition,
// and returns the partition's path and number.
func partitioned(t *testing.T, image *os.File) (path, number string) {
	t.Helper()
	loop := devicetest.Attach(t, image, loopdev.ForBlock)
	whole, err := os.Open(loop.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	info, err := unix.IoctlLoopGetStatus64(int(whole.Fd()))
	if err == nil {
		info.Flags |= unix.LO_FLAGS_PARTSCAN
		err = unix.IoctlLoopSetStatus64(int(whole.Fd()), info)
	}
	if err != nil {
		t.Fatal(err)
	}
	addPartition(t, whole)
	name := filepath.Base(loop.Path())
	read, err := os.ReadFile("/sys/block/" + name + "/" + name + "p1/dev")
	if err != nil {
		t.Fatal(err)
	}
	return loop.Path() + "p1", strings.TrimSpace(string(read))
}

// addPartition has the kernel add partition 1 of a device. It reads no table: not
// each kernel knows each kind of table.
func addPartition(t *testing.T, whole *os.File) {
	t.Helper()
	const blkpg, half = 0x1269, devicetest.Mebibyte / 2
	added := unix.BlkpgPartition{Start: half, Length: half, Pno: 1}
	argument := unix.BlkpgIoctlArg{Op: unix.BLKPG_ADD_PARTITION, Datalen: int32(unsafe.Sizeof(added)), Data: (*byte)(unsafe.Pointer(&added))}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, whole.Fd(), blkpg, uintptr(unsafe.Pointer(&argument)))
	if errno != 0 {
		t.Fatal(errno)
	}
}

func TestAPartitionOfALoopDeviceIsNotTheDevice(t *testing.T) {
	mounttest.NeedsRoot(t)
	image := devicetest.NewImage(t, devicetest.Mebibyte)
	path, number := partitioned(t, image)
	if shows, err := loopdev.IsBackedBy(path, image); shows || err != nil {
		t.Errorf("%s is taken for the whole: %v", path, err)
	}
	if loop, err := loopdev.LoopAt(number); loop != nil || err != nil {
		t.Errorf("%s is %v, %v", number, loop, err)
	}
	whole := devicetest.Find(t, image)
	if whole == nil {
		t.Fatal("the device isn't found beside its partition")
	}
	defer whole.Close()
	again, err := loopdev.LoopAt(whole.Device())
	if err != nil || again == nil || again.Path() != whole.Path() {
		t.Fatalf("%s is %v, %v", whole.Device(), again, err)
	}
	again.Close()
}

// Of a kernel with loop.max_part, this isn't the number in the device's name.
func TestTheNumberOfADeviceIsThatOfWhatIsMountedFromIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	devicetest.Needs(t, "mkfs.ext4")
	devicetest.Attach(t, devicetest.NewImage(t, devicetest.Mebibyte), loopdev.ForBlock) // so that the next isn't loop0
	image := devicetest.NewImage(t, 16*devicetest.Mebibyte)
	if err := devicetest.FileSystems.Format(t.Context(), device.PathOf(image), "ext4", 16*devicetest.Mebibyte); err != nil {
		t.Fatal(err)
	}
	loop := devicetest.Attach(t, image, loopdev.ForFileSystem)
	var mounted unix.Stat_t
	if err := unix.Stat(devicetest.MountAt(t, loop.Path(), "ext4"), &mounted); err != nil {
		t.Fatal(err)
	}
	number := fmt.Sprintf("%d:%d", unix.Major(mounted.Dev), unix.Minor(mounted.Dev))
	if loop.Device() != number {
		t.Errorf("%s is taken for %s, and is %s", loop.Path(), loop.Device(), number)
	}
	again, err := loopdev.LoopAt(number)
	if err != nil || again == nil || again.Path() != loop.Path() {
		t.Fatalf("%s is %v, %v", number, again, err)
	}
	again.Close()
}
