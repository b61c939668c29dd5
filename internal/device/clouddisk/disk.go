// Package clouddisk finds disks that a cloud attached to the machine, waits for them, and
// reads what the kernel knows of them. The volume types of the node agent call it.
//
// A disk is known by its name and its serial: another disk that got the name is refused. It
// never writes to a disk.
package clouddisk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
)

// diskName is what disks are called.
var diskName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Kinds of errors of attached disks.
var (
	// ErrNoDisk says that a node has no disk of a name.
	ErrNoDisk = errors.New("there is no such disk on this node")
	// ErrOtherDisk says that what has a disk's name is another disk.
	ErrOtherDisk = errors.New("it is another disk")
)

// Disk is a disk that was attached to this machine, held open. While it is open, no other disk gets its name in /dev or
// its number.
type Disk struct {
	file *os.File
	// name is the kernel's, such as sdb.
	name string
	DiskIdentity
}

// openDisk opens what a path leads to, if that is a whole block device.
func openDisk(path string) (*Disk, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) {
		return nil, fmt.Errorf("opening %s: %w", path, ErrNoDisk)
	}
	if err != nil {
		return nil, &os.PathError{Op: "opening", Path: path, Err: err}
	}
	disk := &Disk{file: os.NewFile(uintptr(fd), path)}
	if err := disk.identify(); err != nil {
		disk.Close()
		return nil, err
	}
	return disk, nil
}

// identify finds out what the kernel calls the device that is open.
func (d *Disk) identify() error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(d.file.Fd()), &stat); err != nil {
		return fmt.Errorf("asking what %s is: %w", d.file.Name(), err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return fmt.Errorf("%s is no block device", d.file.Name())
	}
	number := fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	entry, err := os.Readlink(entryOf(number))
	if err != nil {
		return fmt.Errorf("asking the kernel about %s: %w: %w", d.file.Name(), ErrNoDisk, err)
	}
	d.name = filepath.Base(entry)
	d.DiskIdentity, err = identityOfDisk(number)
	return err
}

// Path is the path of the device.
func (d *Disk) Path() string { return "/dev/" + d.name }

// Name is what the kernel calls the device, such as sdb.
func (d *Disk) Name() string { return d.name }

// Device is major:minor of the device, as the mount table shows it.
func (d *Disk) Device() string { return d.Number }

// Close closes the disk.
func (d *Disk) Close() error { return d.file.Close() }

// Size is how many bytes the disk has now.
func (d *Disk) Size() (int64, error) {
	size, err := d.file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("asking for the size of %s: %w", d.Path(), err)
	}
	return size, nil
}

// Rescan has the kernel read the size of the disk again: some buses don't report a change.
func (d *Disk) Rescan() error {
	for _, ask := range []string{"device/rescan", "device/rescan_controller", "device/device/rescan_controller"} {
		err := os.WriteFile(filepath.Join(entryOf(d.Number), ask), []byte("1"), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("having the size of %s read again: %w", d.Path(), err)
		}
	}
	return nil
}

// IsReadOnly reports whether the kernel refuses to write to the disk.
func (d *Disk) IsReadOnly() (bool, error) {
	readOnly, err := unix.IoctlGetInt(int(d.file.Fd()), unix.BLKROGET)
	if err != nil {
		return false, fmt.Errorf("asking whether %s can be written: %w", d.Path(), err)
	}
	return readOnly != 0, nil
}

// IsTaken reports whether the disk is opened exclusively: its file system is mounted, in
// whatever mount namespace, or a program makes or repairs one.
func (d *Disk) IsTaken() (bool, error) {
	fd, err := unix.Open(d.Path(), unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.EBUSY) {
		return true, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "opening", Path: d.Path(), Err: err}
	}
	return false, unix.Close(fd)
}

// SetReadOnly makes the kernel refuse writes to the disk, or accept them again.
func (d *Disk) SetReadOnly(readOnly bool) error {
	return device.SetReadOnly(d.file, d.Path(), readOnly)
}

// DiskAt opens a disk that was known by an identity; ErrNoDisk if it isn't there, and
// ErrOtherDisk if another has its number.
func DiskAt(identity DiskIdentity) (*Disk, error) {
	entry, err := os.Readlink(entryOf(identity.Number))
	if err != nil {
		return nil, fmt.Errorf("opening disk %s: %w", identity.Number, ErrNoDisk)
	}
	disk, err := openDisk("/dev/" + filepath.Base(entry))
	if err != nil {
		return nil, err
	}
	if disk.DiskIdentity != identity {
		disk.Close()
		return nil, fmt.Errorf("opening disk %s: %w now", identity.Number, ErrOtherDisk)
	}
	return disk, nil
}
