package filetree

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What btrfs calls a snapshot that is for reading only: see linux/btrfs.h.
const (
	btrfsGetFlags, btrfsSetFlags = 0x80089419, 0x4008941a
	btrfsReadOnly                = 1 << 1
)

// makeWritable lets a snapshot of btrfs be changed. Of anything else it is an error.
func makeWritable(dir *os.File) error {
	var flags uint64
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), btrfsGetFlags, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		return fmt.Errorf("asking %s for its flags: %w", dir.Name(), errno)
	}
	flags &^= btrfsReadOnly
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), btrfsSetFlags, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		return fmt.Errorf("making %s writable: %w", dir.Name(), errno)
	}
	return nil
}
