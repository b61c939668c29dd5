package loopdev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sysfs has the kernel's names of devices. A loop device's minor number doesn't follow from
// its name: with the kernel's parameter loop.max_part, the minor numbers between those of two
// loop devices are those of partitions.
type sysfs string

// kernelsSysfs is the machine's.
const kernelsSysfs sysfs = "/sys"

// loopAt is the name of the loop device that has a major:minor, such as loop0; "" if none has:
// a partition of one isn't it.
func (s sysfs) loopAt(number string) string {
	entry, err := os.Readlink(filepath.Join(string(s), "dev", "block", number))
	if name := filepath.Base(entry); err == nil && isLoop(name) {
		return name
	}
	return ""
}

// numberOf is major:minor of the device that the kernel gives a name; an error of
// os.ErrNotExist if there is none.
func (s sysfs) numberOf(name string) (string, error) {
	number, err := os.ReadFile(filepath.Join(string(s), "block", name, "dev"))
	return strings.TrimSpace(string(number)), err
}

// attached lists the names of the loop devices that have a backing file. A device that can't be seen is an error: its file
// would count as unused.
func (s sysfs) attached() ([]string, error) {
	devices, err := os.ReadDir(filepath.Join(string(s), "block"))
	if err != nil {
		return nil, fmt.Errorf("listing loop devices: %w", err)
	}
	var names []string
	for _, device := range devices {
		if !isLoop(device.Name()) {
			continue
		}
		_, err := os.Stat(filepath.Join(string(s), "block", device.Name(), "loop"))
		switch {
		case err == nil:
			names = append(names, device.Name())
		case !errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("looking for the backing file of loop device %s: %w", device.Name(), err)
		}
	}
	return names, nil
}

// check makes sure that a device which was found by its name is the kernel's of that name. A /dev
// that isn't the kernel's own may have another one there.
func (s sysfs) check(name, number string) error {
	kernels, err := s.numberOf(name)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("asking the kernel about %s: %w", name, unix.ENXIO)
	}
	if err != nil {
		return fmt.Errorf("asking the kernel for the number of %s: %w", name, err)
	}
	if number != kernels {
		return fmt.Errorf("/dev/%s is device %s, and the kernel's %s is %s: mount the node's own /dev (devtmpfs)", name, number, name, kernels)
	}
	return nil
}

// isLoop reports whether a whole loop device is called so.
func isLoop(name string) bool {
	number, found := strings.CutPrefix(name, "loop")
	_, err := strconv.ParseUint(number, 10, 32)
	return found && err == nil
}

// numberOfDevice is major:minor of an open block device; an error if it is none.
func numberOfDevice(file *os.File) (string, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return "", fmt.Errorf("asking what %s is: %w", file.Name(), err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", fmt.Errorf("%s is no block device", file.Name())
	}
	return fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev)), nil
}
