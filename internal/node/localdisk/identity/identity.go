// Package identity tells disks apart. It accepts the disk of a backend's folder by a marker
// that it writes there, and recognises the disk by that marker and its file system. It
// refuses folders of other backends, of disks that aren't mounted and of copies, so that
// nothing is written to the wrong disk. It finds volumes on a disk that no LocalVolume has.
// It writes markers and folders only, and never touches a volume.
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

// Disk is a backend's folder on this node as a Store sees it.
type Disk struct {
	// Name is the LocalDisk's.
	Name string
	// Path is the folder, Backend the name of whose it is.
	Path, Backend string
	// Known is the disk that was accepted; nil where none was.
	Known *stowagev1alpha1.DiskIdentity
	// Replaces is the id of a disk that a person gave up.
	Replaces string
}

// Identify finds out whether the disk is there that was accepted, and accepts the
// one that is there where none was. The marker is on the disk before anybody is
// told of it: one that a crash kept from being told of is found again.
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

// recognise makes sure that the disk is there that was accepted.
func (d Disks) recognise(disk Disk) (*stowagev1alpha1.DiskIdentity, error) {
	folder, err := d.openAccepted(disk.Path, disk.Known)
	if err != nil {
		return nil, wayOut(err, disk)
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

// prepareRemoval makes what the removal of volumes needs while there is room for it. On a
// disk that was full before, the removal says so.
func prepareRemoval(folder *os.File) error {
	err := filetree.PrepareRemoval(folder)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return nil
	}
	return notWritable(err)
}

// accept takes the disk that is there for the backend's own from now on.
func (d Disks) accept(disk Disk, volumes layout.Lister) (*stowagev1alpha1.DiskIdentity, error) {
	if disk.Known == nil && disk.Replaces != stowagev1alpha1.ReplacesUnknown {
		if err := d.checkDiskIsNew(disk, volumes); err != nil {
			return nil, wayOut(err, disk)
		}
	}
	folder, err := d.ensureOwnFolder(disk.Path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	there, err := ReadMarker(folder)
	if err != nil {
		return nil, err
	}
	if there != nil && there.Backend != disk.Backend {
		return nil, fmt.Errorf("%w: %s is marked as that of backend %s: use another path or, if that backend is gone for good, remove the file %s there",
			ErrForeignDisk, disk.Path, there.Backend, markerName)
	}
	// One that was given up under this id is a copy: its id would hide the next change.
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

// checkDiskIsNew refuses a folder without a marker in which volumes were made, and
// none of them is there: that is a disk which isn't mounted. Where some are there,
// they were made before disks had markers.
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

// checkWritable says whether volumes can be made in an open folder, as far as that
// shows without writing.
func checkWritable(folder *os.File) error {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &stat); err != nil {
		return fmt.Errorf("asking how %s is mounted: %w", folder.Name(), err)
	}
	if stat.Flags&unix.ST_RDONLY != 0 {
		return fmt.Errorf("%w: %s: a kernel does that to a disk with errors, see its log; check the disk, and mount it writable", ErrReadOnly, folder.Name())
	}
	return nil
}

// wayOut adds to an error of a disk that isn't there what to do if it never will be.
func wayOut(err error, disk Disk) error {
	if !errors.Is(err, layout.ErrNoDisk) {
		return err
	}
	id := stowagev1alpha1.ReplacesUnknown
	if disk.Known != nil {
		id = disk.Known.ID
	}
	return fmt.Errorf(`%w; if it is gone for good, with the volumes on it, use what is there instead: kubectl patch localdisk %s --type=merge -p '{"spec":{"replaces":"%s"}}'`,
		err, disk.Name, id)
}

// Nested says whether one of two paths is the other, or lies below it.
func Nested(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// checkDiskIsThere refuses a folder in which those volumes that were made before are
// all missing: that is a disk which isn't mounted, and what is written there would
// land on the disk below. A volume that is being removed is a sign of that, too: taken
// for removed, it would be forgotten with its data.
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
