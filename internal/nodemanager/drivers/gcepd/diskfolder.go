package gcepd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/volume"
)

// diskFolder holds the records of a disk, and knows where it is mounted for all pods of the node.
type diskFolder struct {
	// dir contains the records of the disk.
	dir string
	// system is where the file system is mounted, and node the file on which the device is.
	system, node string
}

// foldersIn lists the folders of all disks below root.
func foldersIn(root string) ([]diskFolder, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listing the disks that are in use: %w", err)
	}
	folders := make([]diskFolder, 0, len(entries))
	for _, entry := range entries {
		folders = append(folders, diskFolder{dir: filepath.Join(root, entry.Name())})
	}
	return folders, nil
}

// recordFile records which disk is mounted here: the mount table has only its number. halfFile
// exists while its file system is being made: see ensureSystem.
func (p diskFolder) recordFile() string { return filepath.Join(p.dir, "disk") }
func (p diskFolder) halfFile() string   { return filepath.Join(p.dir, "formatting") }

// diskRecord identifies a disk that is mounted, and the volume that it is mounted for.
type diskRecord struct {
	Driver string    `json:"driver"`
	Handle string    `json:"handle"`
	Volume types.UID `json:"volume"`
	Serial string    `json:"serial"`
	// Block: pods see it as a device.
	Block bool `json:"block,omitempty"`
	// ForReaders: no pod may write it, whatever its spec says.
	ForReaders bool                   `json:"forReaders,omitempty"`
	Disk       clouddisk.DiskIdentity `json:"disk"`
	// FSType is the file system that is being made; in halfFile only.
	FSType string `json:"fsType,omitempty"`
}

func recordOf(spec volumes.Spec, disk *clouddisk.Disk) diskRecord {
	volume := spec.PersistentVolume
	return diskRecord{
		Driver: volume.Spec.CSI.Driver, Handle: volume.Spec.CSI.VolumeHandle, Volume: volume.UID, Serial: spec.Attachment.Serial,
		Block: spec.IsBlock(), ForReaders: mounting.IsForReadersOnly(volume), Disk: disk.DiskIdentity,
	}
}

// isSame reports whether two records are of the same disk for the same volume. ForReaders doesn't
// count: it can change.
func (r diskRecord) isSame(other diskRecord) bool {
	r.ForReaders = other.ForReaders
	return r == other
}

func (r diskRecord) name() corev1.UniqueVolumeName { return volume.UniqueName(r.Driver, r.Handle) }

// record reads which disk is mounted here; nil if none is.
func (p diskFolder) record() (*diskRecord, error) { return readRecord[diskRecord](p.recordFile()) }

// half reads on which disk a file system is being made; nil if on none.
func (p diskFolder) half() (*diskRecord, error) { return readRecord[diskRecord](p.halfFile()) }

func readRecord[T any](path string) (*T, error) {
	record, err := volumes.ReadRecord[T](path)
	if err != nil {
		return nil, fmt.Errorf("reading %s, which says what disk is mounted: %w", path, err)
	}
	return record, nil
}

// write writes a record. A crash leaves the old content or the new one.
func (p diskFolder) write(path string, record any) error {
	if err := os.MkdirAll(p.dir, mounting.MountPointMode); err != nil {
		return fmt.Errorf("making the folder of the disk's records: %w", err)
	}
	if err := volumes.WriteRecord(path, record); err != nil {
		return fmt.Errorf("recording which disk is mounted: %w", err)
	}
	return nil
}

// forget removes the given files and then the records of the disk. recordFile goes after all that
// it leads to: while it exists, the disk counts as in use.
func (p diskFolder) forget(first ...string) error {
	for _, file := range append(first, p.halfFile(), p.recordFile()) {
		if err := volumes.RemoveRecord(file); err != nil {
			return fmt.Errorf("removing the record of a disk: %w", err)
		}
	}
	return volumes.RemoveEmptyDir(p.dir)
}

// stagedDisk records where a disk is staged and published. The driver writes a path before it
// mounts anything there.
type stagedDisk struct {
	Handle  string   `json:"handle"`
	Staging string   `json:"staging"`
	Targets []string `json:"targets,omitempty"`
}

// stagedFolder is the folder of a disk that is staged.
type stagedFolder struct {
	diskFolder
	stagedDisk
}

func readStaged(dir string) (stagedFolder, *diskRecord, error) {
	folder := stagedFolder{diskFolder: diskFolder{dir: dir}}
	record, err := folder.record()
	if err != nil {
		return folder, nil, err
	}
	staged, err := readRecord[stagedDisk](folder.stagedFile())
	if staged != nil {
		folder = folderOf(dir, *staged)
	}
	return folder, record, err
}

func folderOf(dir string, staged stagedDisk) stagedFolder {
	return stagedFolder{diskFolder{dir: dir, system: staged.Staging, node: filepath.Join(staged.Staging, "device")}, staged}
}

func (p stagedFolder) stagedFile() string { return filepath.Join(p.dir, "staged") }
