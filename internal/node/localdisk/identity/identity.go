// Package identity recognises disks. It accepts the disk of a backend's folder by a marker that it
// writes there. It recognises the disk by that marker and its file system. It refuses folders of
// other backends, of disks that aren't mounted, and of copies: nothing is written to the wrong
// disk. It finds volumes on a disk that have no NodeVolume. It writes only markers and folders, and
// never touches a volume.
package identity

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/uuid"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Disk is a backend's folder on this node.
type Disk struct {
	// Name is that of the NodeDisk.
	Name string
	// Path is the folder, and Backend the name of its StorageBackend.
	Path, Backend string
	// Known is the accepted disk; nil where there is none.
	Known *stowagev1alpha1.DiskIdentity
	// Replaces is the id of a disk that the user gave up.
	Replaces string
}

// Identify checks that the accepted disk is there. Where none was accepted, it accepts the disk
// that is there. The marker is on the disk before the status has it: after a crash, the next
// call finds the marker.
func (d Disks) Identify(disk Disk, volumes layout.Lister) (*stowagev1alpha1.DiskIdentity, error) {
	if disk.Known == nil {
		return d.accept(disk, volumes)
	}
	there, err := d.recognise(disk)
	if errors.Is(err, layout.ErrNoDisk) && disk.Replaces == disk.Known.ID {
		return d.accept(disk, volumes)
	}
	return there, err
}

// recognise checks that the accepted disk is there.
func (d Disks) recognise(disk Disk) (*stowagev1alpha1.DiskIdentity, error) {
	folder, err := d.openAccepted(disk.Path, disk.Known)
	if err != nil {
		return nil, withReplacement(err, disk)
	}
	defer folder.Close()
	there, err := identityOf(folder, Marker{ID: disk.Known.ID})
	if err != nil {
		return nil, err
	}
	if err := checkWritable(folder); err != nil {
		return there, err
	}
	return there, prepareRemoval(folder)
}

// prepareRemoval makes the directory that removals need, while there is room for it. On a disk
// that is full already, the removal itself reports that.
func prepareRemoval(folder *os.File) error {
	err := filetree.PrepareRemoval(folder)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return nil
	}
	return notWritable(err)
}

// accept marks the disk that is there as the backend's own.
func (d Disks) accept(disk Disk, volumes layout.Lister) (*stowagev1alpha1.DiskIdentity, error) {
	if disk.Known == nil && disk.Replaces != stowagev1alpha1.ReplacesUnknown {
		if err := d.checkDiskIsNew(disk, volumes); err != nil {
			return nil, withReplacement(err, disk)
		}
	}
	folder, err := d.ensureOwnFolder(disk.Path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	locked, err := lock(folder)
	if err != nil {
		return nil, err
	}
	defer locked.Close()
	there, err := ReadMarker(folder)
	if err != nil {
		return nil, err
	}
	if there != nil && there.Backend != disk.Backend {
		return nil, fmt.Errorf("%w: %s is marked as that of backend %s: use another path or, if that backend is gone for good, remove the file %s there",
			ErrForeignDisk, disk.Path, there.Backend, markerName)
	}
	// The user gave up the disk of this id, so this one is a copy. With the same id, the next
	// change of the disk would not be noticed.
	if there == nil || disk.Known != nil && there.ID == disk.Known.ID {
		there = &Marker{ID: string(uuid.NewUUID()), Backend: disk.Backend}
		if err := writeMarker(folder, *there); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(checkWritable(folder), prepareRemoval(folder)); err != nil {
		return nil, err
	}
	return identityOf(folder, *there)
}

// checkDiskIsNew refuses a folder without a marker where volumes were made, and all of them are
// missing: its disk isn't mounted. Where some exist, they are older than markers.
func (d Disks) checkDiskIsNew(disk Disk, volumes layout.Lister) error {
	if folder, err := d.OpenFolder(disk.Path); err == nil {
		there, err := ReadMarker(folder)
		folder.Close()
		if err != nil || there != nil {
			return err
		}
	}
	listed, err := volumes()
	if err != nil {
		return err
	}
	return d.checkDiskIsThere(disk.Path, listed)
}

// checkWritable returns ErrReadOnly for a folder on a read-only file system. It writes nothing.
func checkWritable(folder *os.File) error {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &stat); err != nil {
		return fmt.Errorf("reading how %s is mounted: %w", folder.Name(), err)
	}
	if stat.Flags&unix.ST_RDONLY != 0 {
		return fmt.Errorf("%w: %s: a kernel does that to a disk with errors, see its log; check the disk, and mount it writable", ErrReadOnly, folder.Name())
	}
	return nil
}

// withReplacement adds to ErrNoDisk how to replace a disk that is gone for good.
func withReplacement(err error, disk Disk) error {
	if !errors.Is(err, layout.ErrNoDisk) {
		return err
	}
	id := stowagev1alpha1.ReplacesUnknown
	if disk.Known != nil {
		id = disk.Known.ID
	}
	return fmt.Errorf(`%w; if it is gone for good, with the volumes on it, use what is there instead: kubectl patch nodedisk %s --type=merge -p '{"spec":{"replaces":"%s"}}'`,
		err, disk.Name, id)
}

// Nested reports whether two paths are equal, or one lies below the other.
func Nested(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// checkDiskIsThere refuses a folder where all volumes that were made are missing: its disk isn't
// mounted, and writes would land on the disk below. Volumes that are being removed count, too:
// else their objects would go, and their data would stay.
func (d Disks) checkDiskIsThere(path string, others []layout.Volume) error {
	missing := ""
	for _, other := range others {
		if other.Path != path || !other.Provisioned && !other.Removing {
			continue
		}
		exists, err := d.Base.Exists(other)
		if err != nil || exists {
			return err
		}
		missing = other.Name
	}
	if missing != "" {
		return fmt.Errorf("%w: volume %s was made in %s and isn't there: mount the disk", layout.ErrNoDisk, missing, path)
	}
	return nil
}
