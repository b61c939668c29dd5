package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

const (
	// markerName is the file in a backend's folder that identifies the disk.
	markerName = ".stowage-disk"
	// newMarkerName is the name of a marker until it is synced.
	newMarkerName = markerName + ".new"
	// maxMarker is the longest marker that is read, in bytes.
	maxMarker = 4096
)

// Marker is the content of a marker file.
type Marker struct {
	// ID is random, made when the disk was accepted.
	ID string `json:"id"`
	// Backend is the name of the StorageBackend of the volumes beside the marker.
	Backend string `json:"backend"`
}

// ReadMarker reads the marker in an open folder; nil where there is none.
func ReadMarker(folder *os.File) (*Marker, error) {
	path := filepath.Join(folder.Name(), markerName)
	// O_NONBLOCK: opening a pipe would wait for a writer.
	fd, err := unix.Openat(int(folder.Fd()), markerName, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil //nolint:nilnil // no marker is an answer
	}
	if err != nil {
		return nil, &os.PathError{Op: "opening", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxMarker))
	if err != nil {
		return nil, fmt.Errorf("reading the marker of the disk: %w", err)
	}
	read := &Marker{}
	if err := json.Unmarshal(content, read); err != nil || read.ID == "" {
		return nil, fmt.Errorf("%w: %s isn't one that Stowage wrote: restore it, or remove it if no volume lies beside it", ErrForeignDisk, path)
	}
	return read, nil
}

// writeMarker writes or replaces the marker in an open folder, atomically and synced.
func writeMarker(folder *os.File, written Marker) error {
	content, err := json.Marshal(written)
	if err != nil {
		return err
	}
	at, path := int(folder.Fd()), filepath.Join(folder.Name(), newMarkerName)
	if err := unix.Unlinkat(at, newMarkerName, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return notWritable(&os.PathError{Op: "removing", Path: path, Err: err})
	}
	fd, err := unix.Openat(at, newMarkerName, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return notWritable(&os.PathError{Op: "making", Path: path, Err: err})
	}
	file := os.NewFile(uintptr(fd), path)
	_, err = file.Write(append(content, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return notWritable(fmt.Errorf("writing %s: %w", path, err))
	}
	if err := unix.Renameat(at, newMarkerName, at, markerName); err != nil {
		return notWritable(&os.PathError{Op: "naming", Path: path, Err: err})
	}
	return safepath.SyncDir(folder)
}

// fileSystemOf returns the identity of the file system of an open folder; "" for types that keep
// none on the disk. Those derive an fsid from the device number, for example, which may change at
// the next boot.
func fileSystemOf(folder *os.File) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &stat); err != nil {
		return "", fmt.Errorf("reading the file system of %s: %w", folder.Name(), err)
	}
	name := map[uint32]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.BTRFS_SUPER_MAGIC: "btrfs"}[uint32(stat.Type)]
	if name == "" {
		return "", nil
	}
	return fmt.Sprintf("%s:%08x%08x", name, uint32(stat.Fsid.Val[0]), uint32(stat.Fsid.Val[1])), nil
}

// identityOf returns the identity of the disk of an open folder.
func identityOf(folder *os.File, of Marker) (*stowagev1alpha1.DiskIdentity, error) {
	fileSystem, err := fileSystemOf(folder)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &stat); err != nil {
		return nil, fmt.Errorf("reading the device of %s: %w", folder.Name(), err)
	}
	return &stowagev1alpha1.DiskIdentity{
		ID: of.ID, FileSystem: fileSystem, Device: fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev)),
	}, nil
}

// CheckIdentity returns ErrNoDisk where an open folder isn't on an accepted disk.
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
	// A copy of all files has the marker, too, and is another disk.
	fileSystem, err := fileSystemOf(folder)
	if err == nil && fileSystem != known.FileSystem {
		return fmt.Errorf("%w: %s bears the marker of disk %s, and lies on file system %q instead of %q: mount the disk that it was copied from",
			layout.ErrNoDisk, folder.Name(), known.ID, fileSystem, known.FileSystem)
	}
	return err
}
