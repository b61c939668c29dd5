package duplicate

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxAttribute is the most that the kernel keeps under one name, and for a list.
const maxAttribute = 64 << 10

// copyMetadata copies the owner, the mode, the extended attributes and the times, in this order. A
// new owner clears setuid, and an access list changes the mode. Both files may be open with O_PATH.
func copyMetadata(to, from *os.File) error {
	var stat unix.Stat_t
	err := unix.Fstat(int(from.Fd()), &stat)
	if err == nil {
		err = unix.Fchownat(int(to.Fd()), "", int(stat.Uid), int(stat.Gid), unix.AT_EMPTY_PATH)
	}
	if err == nil && stat.Mode&unix.S_IFMT != unix.S_IFLNK { // which has no mode
		err = unix.Chmod(throughProc(to), stat.Mode&0o7777)
	}
	if err == nil {
		err = copyAttributes(to, from)
	}
	if err == nil {
		err = unix.UtimesNanoAt(int(to.Fd()), "", []unix.Timespec{stat.Atim, stat.Mtim}, unix.AT_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("copying owner, mode and times of %s: %w", from.Name(), err)
	}
	return nil
}

// copyAttributes copies extended attributes: access lists, file capabilities, labels.
func copyAttributes(to, from *os.File) error {
	list := make([]byte, maxAttribute)
	length, err := unix.Listxattr(throughProc(from), list)
	if errors.Is(err, unix.EOPNOTSUPP) || length == 0 && err == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing its attributes: %w", err)
	}
	value := make([]byte, maxAttribute)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:length]), "\x00"), "\x00") {
		size, err := unix.Getxattr(throughProc(from), name, value)
		if err == nil {
			err = unix.Setxattr(throughProc(to), name, value[:size], 0)
		}
		if err != nil {
			return fmt.Errorf("copying its attribute %s: %w", name, err)
		}
	}
	return nil
}

// throughProc is a path of the very file that is open here.
func throughProc(file *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(file.Fd())) }
