package identity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Disks accepts the disks of a node, and recognises them.
type Disks struct {
	// Base is the directory of the folders of all backends.
	Base layout.Base
}

// FolderOf opens the folder of a volume's backend, on the volume's disk. Where that isn't known, it
// makes the folder.
func (d Disks) FolderOf(volume layout.Volume) (*os.File, error) {
	if volume.Disk != nil {
		return d.openAccepted(volume.Path, volume.Disk)
	}
	return d.ensureFolder(volume.Path)
}

// ensureFolder makes and opens the folder of a backend below the base. Each part is synced: after a
// loss of power, a volume in it must be found by its path.
func (d Disks) ensureFolder(path string) (*os.File, error) {
	folder, err := d.Base.Open(string(d.Base))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s, the base of this node's volumes, is missing: create it, or mount the disk", layout.ErrNoDisk, d.Base)
	}
	if err != nil {
		return nil, err
	}
	relative, err := filepath.Rel(string(d.Base), path)
	if err != nil || !filepath.IsLocal(relative) {
		folder.Close()
		return nil, safepath.ErrOutside
	}
	if relative == "." {
		return folder, nil
	}
	for _, part := range strings.Split(relative, string(filepath.Separator)) {
		next, err := ensureSubfolder(folder, part)
		folder.Close()
		if err != nil {
			return nil, err
		}
		folder = next
	}
	return folder, nil
}

func ensureSubfolder(folder *os.File, name string) (*os.File, error) {
	if err := safepath.EnsureDir(folder, name, layout.FolderMode); err != nil {
		return nil, err
	}
	if err := safepath.SyncDir(folder); err != nil {
		return nil, err
	}
	return safepath.OpenAt(folder, name)
}

// lock keeps other agents from accepting the disk of a folder, until the caller closes the lock: of
// two markers, one agent would know only its own. A file system without locks for directories, such
// as NFS, is accepted without.
func lock(folder *os.File) (*os.File, error) {
	locked, err := safepath.Reopen(folder)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(locked.Fd()), unix.LOCK_EX)
		switch {
		case err == nil, errors.Is(err, unix.EBADF), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP):
			return locked, nil
		case !errors.Is(err, unix.EINTR):
			locked.Close()
			return nil, &os.PathError{Op: "locking", Path: folder.Name(), Err: err}
		}
	}
}

// CheckDisk returns ErrNoDisk where the disk of a volume isn't there. A volume without a known disk
// passes.
func (d Disks) CheckDisk(volume layout.Volume) error {
	if volume.Disk == nil {
		return nil
	}
	folder, err := d.openAccepted(volume.Path, volume.Disk)
	if errors.Is(err, ErrSymlink) || errors.Is(err, ErrNotDirectory) {
		return fmt.Errorf("%w: %w", layout.ErrNoDisk, err)
	}
	if err != nil {
		return err
	}
	return folder.Close()
}

// OpenFolder opens a backend's folder. Its errors name what is wrong with the path.
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

// openAccepted opens the folder of an accepted disk, and checks its identity. What happens in the
// open folder happens on that disk, whatever is mounted over the path since.
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

// ensureOwnFolder makes a backend's folder. The folder above must exist: a missing one may be a
// disk that isn't mounted.
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
