package loopdev

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
)

// Use is what a loop device is for.
type Use int

const (
	// ForFileSystem has the kernel take the device away with its last user, so that
	// none is left behind by a crash. Keep the Loop open until it is mounted.
	ForFileSystem Use = iota
	// ForBlock keeps the device until Detach, also while nothing has it open: pods use it
	// by its path.
	ForBlock
)

// maxSector is the largest unit that file systems are made for: see Format.
const maxSector = 4096

// sectorOf is the sector size of a device. On disks with sectors larger than 512 bytes, direct I/O
// needs as large ones. Only a device for a file system made for it gets them. Other content may
// depend on the sector size, and must find the same one each time.
func sectorOf(backing *os.File, use Use) (uint32, error) {
	var stat unix.Statx_t
	err := unix.Statx(int(backing.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN|unix.STATX_SIZE, &stat)
	if err != nil {
		return 0, fmt.Errorf("asking for the size of %s: %w", backing.Name(), err)
	}
	align := stat.Dio_offset_align // 0 where it is unknown
	if use == ForFileSystem && align > device.SectorBytes && align <= maxSector && stat.Size%uint64(align) == 0 {
		return align, nil
	}
	return device.SectorBytes, nil
}

// setUse sets the use of a device, also of one that was attached for another.
func (l *Loop) setUse(use Use) error {
	info, err := unix.IoctlLoopGetStatus64(int(l.file.Fd()))
	if err != nil {
		return fmt.Errorf("asking what %s shows: %w", l.Path(), err)
	}
	wanted := info.Flags &^ unix.LO_FLAGS_AUTOCLEAR
	if use == ForFileSystem {
		wanted |= unix.LO_FLAGS_AUTOCLEAR
	}
	if wanted == info.Flags {
		return nil
	}
	info.Flags = wanted
	if err := unix.IoctlLoopSetStatus64(int(l.file.Fd()), info); err != nil {
		return fmt.Errorf("saying how long %s stays: %w", l.Path(), err)
	}
	return nil
}
