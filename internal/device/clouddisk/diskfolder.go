package clouddisk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

const (
	// linkPrefix begins the names of links to disks, as Google's udev rules make them.
	linkPrefix = "google-"
	// lookAgain is how often a disk is looked for although nothing was heard of it: no
	// event comes from a folder of another machine's.
	recheckEvery = 500 * time.Millisecond
)

// DiskFolder is where disks are found by their names, and how they tell that they are
// the right ones.
type DiskFolder struct {
	// Path of the folder with the links google-<name>, such as /dev/disk/by-id.
	Path string
	// Serials tells which disk a device is.
	Serials Serials
}

// NewDiskFolder returns the folder at a path. One in /dev has the machine's own disks,
// which are asked for their serials; another one is a cloud's that is only tried,
// which writes them into its folder serial.
func NewDiskFolder(path string) DiskFolder {
	if path == "/dev" || strings.HasPrefix(path, "/dev/") {
		return DiskFolder{Path: path, Serials: HardwareSerials{}}
	}
	return DiskFolder{Path: path, Serials: SerialFolder(filepath.Join(path, "serial"))}
}

// Open opens the disk with a name, if it has the serial too: a name alone may lead to
// a disk that had it before. The serial is read after opening, as only a disk that is
// open stays the one that it is.
func (f DiskFolder) Open(name, serial string) (*Disk, error) {
	if !diskName.MatchString(name) || serial == "" {
		return nil, fmt.Errorf("looking for a disk: %q with serial %q names none", name, serial)
	}
	disk, err := openDisk(filepath.Join(f.Path, linkPrefix+name))
	if err != nil {
		return nil, err
	}
	found, err := f.Serials.SerialOf(disk)
	if err == nil && found == serial {
		return disk, nil
	}
	disk.Close()
	if err == nil || errors.Is(err, errNoSerial) {
		return nil, fmt.Errorf("%s%s leads to %s, whose serial is %q and not %q: %w", linkPrefix, name, disk.Path(), found, serial, ErrOtherDisk)
	}
	return nil, fmt.Errorf("asking %s for its serial: %w", disk.Path(), err)
}

// Await is Open of a disk that is about to appear: it waits until the context ends.
func (f DiskFolder) Await(ctx context.Context, name, serial string) (*Disk, error) {
	changes, stop, err := f.watch()
	if err != nil {
		return nil, err
	}
	defer stop()
	tick := time.NewTicker(recheckEvery)
	defer tick.Stop()
	for {
		disk, err := f.Open(name, serial)
		if !errors.Is(err, ErrNoDisk) && !errors.Is(err, ErrOtherDisk) {
			return disk, err
		}
		select {
		case <-changes:
		case <-tick.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Watch tells each time that devices came or went, until the context ends. It may
// tell for nothing.
func (f DiskFolder) Watch(ctx context.Context, tell func()) error {
	changes, stop, err := f.watch()
	if err != nil {
		return err
	}
	defer stop()
	for {
		select {
		case <-changes:
			tell()
		case <-ctx.Done():
			return nil
		}
	}
}
