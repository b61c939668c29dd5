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
	// recheckEvery is how often Await tries without an event: a folder on another machine
	// sends none.
	recheckEvery = 500 * time.Millisecond
)

// DiskFolder finds disks by their names, and proves them by their serials.
type DiskFolder struct {
	// Path of the folder with the links google-<name>, such as /dev/disk/by-id.
	Path string
	// Serials reads the serial of a device.
	Serials Serials
}

// NewDiskFolder returns the folder at a path. One in /dev has the machine's own disks: the
// hardware has their serials. Another one is that of a simulated cloud, which writes them into
// its folder serial.
func NewDiskFolder(path string) DiskFolder {
	if path == "/dev" || strings.HasPrefix(path, "/dev/") {
		return DiskFolder{Path: path, Serials: HardwareSerials{}}
	}
	return DiskFolder{Path: path, Serials: SerialFolder(filepath.Join(path, "serial"))}
}

// Open opens the disk with a name, if it has the serial, too: a name alone may lead to an
// earlier disk of that name. It reads the serial after opening, as only an open disk can't be
// replaced.
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
		return nil, fmt.Errorf("%s%s leads to %s with serial %q, not %q: %w", linkPrefix, name, disk.Path(), found, serial, ErrOtherDisk)
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

// Watch calls notify each time that devices came or went, until the context ends, and
// sometimes for no reason.
func (f DiskFolder) Watch(ctx context.Context, notify func()) error {
	changes, stop, err := f.watch()
	if err != nil {
		return err
	}
	defer stop()
	for {
		select {
		case <-changes:
			notify()
		case <-ctx.Done():
			return nil
		}
	}
}
