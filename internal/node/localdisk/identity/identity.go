// Package identity tells disks apart. It accepts the disk of a backend's folder by a marker
// that it writes there, and recognises the disk by that marker and its file system. It
// refuses folders of other backends, of disks that aren't mounted and of copies, so that
// nothing is written to the wrong disk. It finds volumes on a disk that no NodeVolume has.
// It writes markers and folders only, and never touches a volume.
package identity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/uuid"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// What can be wrong with a disk.
var (
	ErrForeignDisk  = errors.New("the folder isn't this backend's")
	ErrPathTaken    = errors.New("the folder is another backend's, too")
	ErrPathMissing  = errors.New("the folder isn't there")
	ErrSymlink      = errors.New("the path leads through a symlink")
	ErrNotDirectory = errors.New("the path leads through a file")
	ErrReadOnly     = errors.New("the file system is read-only")
	ErrNotWritable  = errors.New("the folder can't be written")
)

// Disks accepts the disks of a node, by a marker in the folder of a backend, and recognises
// them.
type Disks struct {
	// Base is where the folders of all backends lie.
	Base layout.Base
}

// Disk is a backend's folder on this node as a Store sees it.
type Disk struct {
	// Name is the NodeDisk's.
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

// openAccepted opens the folder of a disk that was accepted, and makes sure that it
// is that disk's. What is done in the open folder is done on that disk.
func (d Disks) openAccepted(path string, known *stowagev1alpha1.DiskIdentity) (*os.File, error) {
	folder, err := d.OpenFolder(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing: mount the disk", layout.ErrNoDisk, path)
	}
	if err != nil {
		return nil, err
	}
	if err := CheckIdentity(folder, known); err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// CheckIdentity makes sure that an open folder is that of a disk that was accepted.
func CheckIdentity(folder *os.File, known *stowagev1alpha1.DiskIdentity) error {
	there, err := ReadMarker(folder)
	switch {
	case err != nil:
		return err
	case there == nil:
		return fmt.Errorf("%w: %s doesn't bear the marker of disk %s: mount that disk there", layout.ErrNoDisk, folder.Name(), known.ID)
	case there.ID != known.ID:
		return fmt.Errorf("%w: at %s is disk %s, of backend %s, and not disk %s: mount that one", layout.ErrNoDisk,
			folder.Name(), there.ID, there.Backend, known.ID)
	case known.FileSystem == "":
		return nil
	}
	// A copy of the files, the marker among them, is another disk.
	fileSystem, err := fileSystemOf(folder)
	if err == nil && fileSystem != known.FileSystem {
		return fmt.Errorf("%w: %s bears the marker of disk %s, and lies on file system %q instead of %q: mount the disk that it was copied from",
			layout.ErrNoDisk, folder.Name(), known.ID, fileSystem, known.FileSystem)
	}
	return err
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

// OpenFolder opens a backend's folder, and says what is wrong with its path.
func (d Disks) OpenFolder(path string) (*os.File, error) {
	folder, err := d.Base.Open(path)
	relative, outside := filepath.Rel(string(d.Base), path)
	switch {
	case errors.Is(err, safepath.ErrOutside) && outside == nil && filepath.IsLocal(relative):
		return nil, fmt.Errorf("%w: %s: name the folder itself in another StorageBackend, or mount the disk there: links can be moved", ErrSymlink, path)
	case errors.Is(err, unix.ENOTDIR):
		return nil, fmt.Errorf("%w: %s: remove the file, or use another path", ErrNotDirectory, path)
	default:
		return folder, err
	}
}

// ensureOwnFolder makes a backend's folder, in one that must be there: what is
// missing above it may be a disk that isn't mounted.
func (d Disks) ensureOwnFolder(path string) (*os.File, error) {
	folder, err := d.OpenFolder(path)
	if !errors.Is(err, os.ErrNotExist) {
		return folder, err
	}
	parent, err := d.OpenFolder(filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s, which is to hold it, is missing: mount the disk, or create the folder", ErrPathMissing, filepath.Dir(path))
	}
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if folder, err = ensureSubfolder(parent, filepath.Base(path)); err != nil {
		return nil, notWritable(err)
	}
	return folder, nil
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

// notWritable tells why a write to a disk was refused.
func notWritable(err error) error {
	switch {
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: mount it writable: %w", ErrReadOnly, err)
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: see who owns it, and its attributes (lsattr): %w", ErrNotWritable, err)
	default:
		return err
	}
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
	return fmt.Errorf(`%w; if it is gone for good, with the volumes on it, use what is there instead: kubectl patch nodedisk %s --type=merge -p '{"spec":{"replaces":"%s"}}'`,
		err, disk.Name, id)
}

// Nested says whether one of two paths is the other, or lies below it.
func Nested(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}
