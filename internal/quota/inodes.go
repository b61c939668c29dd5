package quota

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fewestInodes is how many inodes go with a number of bytes, however small: a directory of
// a few MiB may hold many small files.
const fewestInodes = 1024

// ShareOfInodes is how many inodes go with a number of bytes of the file system that a directory lies
// on. It is the same part of the inodes as of the bytes, and at least 1024. The directory must not be
// in a project itself. It is 0 for no bytes, and where the file system has no number of inodes, as
// btrfs.
func ShareOfInodes(dir *os.File, bytes int64) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &stat); err != nil {
		return 0, fmt.Errorf("asking for the inodes of the disk at %s: %w", dir.Name(), err)
	}
	size, inodes := float64(stat.Blocks)*float64(stat.Frsize), float64(stat.Files)
	if stat.Type == unix.XFS_SUPER_MAGIC {
		most, err := mostInodes(dir)
		if err != nil {
			return 0, err
		}
		inodes = most
	}
	if size == 0 || inodes == 0 || bytes == 0 {
		return 0, nil
	}
	return max(fewestInodes, int64(inodes*(float64(bytes)/size))), nil
}

// mostInodes is how many inodes xfs makes at most. It makes them on demand, and the number in
// statfs shrinks while the disk fills up: limits of volumes would shrink with it.
func mostInodes(dir *os.File) (float64, error) {
	answer := &geometry{}
	if err := ioctl(dir, getGeometry, unsafe.Pointer(answer)); err != nil {
		return 0, fmt.Errorf("asking for the inodes of the disk at %s: %w", dir.Name(), err)
	}
	percent := float64(answer.inodePercent)
	if percent == 0 {
		percent = 100 // no limit but its size
	}
	return float64(answer.dataBlocks) * float64(answer.blockSize) * percent / 100 / float64(max(answer.inodeSize, 1)), nil
}
