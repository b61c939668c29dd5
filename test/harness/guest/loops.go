package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// loopMajor is the major number of loop devices.
const loopMajor = 7

// loop is a loop device that shows a file.
type loop struct {
	path string
	// number is the device's own, and shows is the file's.
	number uint64
	shows  inode
}

type inode struct{ device, number uint64 }

// errLoops says that devices go once the kernel has taken down what used them.
var errLoops = errors.New("loop devices of the test's are still there")

// detachLoops takes away the loop devices that show the test's disks, and those that
// show files on them: these first, as they keep the others. While there are any that is
// an error.
func (f Folder) detachLoops() error {
	disks, err := f.diskInodes()
	if err != nil {
		return err
	}
	loops, err := attachedLoops()
	if err != nil {
		return err
	}
	ours := standingOn(disks, loops)
	if len(ours) == 0 {
		return nil
	}
	problems := []error{errLoops}
	for _, loop := range slices.Backward(ours) {
		problems = append(problems, loop.detach())
	}
	return errors.Join(problems...)
}

// standingOn are the loop devices that show disks, or files on those, and so on, each
// before what stands on it.
func standingOn(disks map[inode]bool, loops []loop) []loop {
	var found []loop
	devices := map[uint64]bool{}
	for {
		known := len(found)
		for _, loop := range loops {
			if !devices[loop.number] && (disks[loop.shows] || devices[loop.shows.device]) {
				devices[loop.number] = true
				found = append(found, loop)
			}
		}
		if len(found) == known {
			return found
		}
	}
}

func (f Folder) diskInodes() (map[inode]bool, error) {
	paths, err := filepath.Glob(filepath.Join(f.disks(), "*"))
	if err != nil {
		return nil, err
	}
	disks := map[inode]bool{}
	for _, path := range paths {
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil {
			return nil, fmt.Errorf("asking for the inode of %s: %w", path, err)
		}
		disks[inode{stat.Dev, stat.Ino}] = true
	}
	return disks, nil
}

// attachedLoops are all of the machine's that show something.
func attachedLoops() ([]loop, error) {
	entries, err := filepath.Glob("/sys/block/loop*/loop")
	if err != nil {
		return nil, err
	}
	var loops []loop
	for _, entry := range entries {
		path := "/dev/" + filepath.Base(filepath.Dir(entry))
		found, err := lookAt(path)
		if errors.Is(err, unix.ENXIO) || errors.Is(err, os.ErrNotExist) {
			continue // it is gone already
		}
		if err != nil {
			return nil, fmt.Errorf("asking what %s shows: %w", path, err)
		}
		loops = append(loops, found)
	}
	return loops, nil
}

func lookAt(path string) (loop, error) {
	device, err := os.Open(path)
	if err != nil {
		return loop{}, err
	}
	defer device.Close()
	info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
	if err != nil {
		return loop{}, err
	}
	return loop{path, unix.Mkdev(loopMajor, info.Number), inode{info.Device, info.Inode}}, nil
}

// detach takes a loop device away, and says so if others have it open. It may have
// gone, and show what is another's: that is asked again.
func (l loop) detach() error {
	device, err := os.Open(l.path)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer device.Close()
	info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
	if errors.Is(err, unix.ENXIO) || err == nil && (inode{info.Device, info.Inode}) != l.shows {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking what %s shows: %w", l.path, err)
	}
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detaching %s: %w", l.path, err)
	}
	return nil
}
