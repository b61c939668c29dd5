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

// diskFolder is what is known of a disk, and where it is mounted for all pods of the node.
type diskFolder struct {
	// dir has what is known of the disk.
	dir string
	// system is where the file system is mounted, and node what the device is mounted on.
	system, node string
}

// placesIn are all places in a folder.
func placesIn(folder string) ([]diskFolder, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listing the disks that are in use: %w", err)
	}
	places := make([]diskFolder, 0, len(entries))
	for _, entry := range entries {
		places = append(places, diskFolder{dir: filepath.Join(folder, entry.Name())})
	}
	return places, nil
}

// recordFile tells which disk is shown here: all that the mount table shows of one is
// a number. halfFile says that its file system isn't made yet: see ensureSystem.
func (p diskFolder) recordFile() string { return filepath.Join(p.dir, "disk") }
func (p diskFolder) halfFile() string   { return filepath.Join(p.dir, "formatting") }

// diskRecord is which disk is shown, and for which volume.
type diskRecord struct {
	Driver string    `json:"driver"`
	Handle string    `json:"handle"`
	Volume types.UID `json:"volume"`
	Serial string    `json:"serial"`
	// Block: pods see it as a device.
	Block bool `json:"block,omitempty"`
	// ForReaders: nobody may write it, whatever pods say.
	ForReaders bool                   `json:"forReaders,omitempty"`
	Disk       clouddisk.DiskIdentity `json:"disk"`
	// FSType is what is being made on it; in the note of that only.
	FSType string `json:"fsType,omitempty"`
}

func recordOf(spec volumes.Spec, disk *clouddisk.Disk) diskRecord {
	volume := spec.PersistentVolume
	return diskRecord{
		Driver: volume.Spec.CSI.Driver, Handle: volume.Spec.CSI.VolumeHandle, Volume: volume.UID, Serial: spec.Attachment.Serial,
		Block: spec.IsBlock(), ForReaders: mounting.IsForReadersOnly(volume), Disk: disk.DiskIdentity,
	}
}

// isSame says whether two records are of the same disk for the same volume. How it may
// be used can change.
func (r diskRecord) isSame(other diskRecord) bool {
	r.ForReaders = other.ForReaders
	return r == other
}

func (r diskRecord) name() corev1.UniqueVolumeName { return volume.UniqueName(r.Driver, r.Handle) }

// record is which disk is shown here; nil if none is.
func (p diskFolder) record() (*diskRecord, error) { return readRecord[diskRecord](p.recordFile()) }

// half is the disk whose file system is being made; nil if none is.
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
		return fmt.Errorf("noting which disk is mounted: %w", err)
	}
	return nil
}

// forget removes what is known of the disk, and other files first. The record goes last of
// what it speaks of: while it is there, the disk counts as in use.
func (p diskFolder) forget(first ...string) error {
	for _, file := range append(first, p.halfFile(), p.recordFile()) {
		if err := volumes.RemoveRecord(file); err != nil {
			return fmt.Errorf("removing what was known of a disk: %w", err)
		}
	}
	return volumes.RemoveEmptyDir(p.dir)
}

// stagedDisk is where a disk is staged, and published. A path is written before anything
// is mounted there.
type stagedDisk struct {
	Handle  string   `json:"handle"`
	Staging string   `json:"staging"`
	Targets []string `json:"targets,omitempty"`
}

// stagedPlace is the place of a disk that is staged.
type stagedPlace struct {
	diskFolder
	stagedDisk
}

func readStaged(dir string) (stagedPlace, *diskRecord, error) {
	place := stagedPlace{diskFolder: diskFolder{dir: dir}}
	record, err := place.record()
	if err != nil {
		return place, nil, err
	}
	staged, err := readRecord[stagedDisk](place.stagedFile())
	if staged != nil {
		place = placeOf(dir, *staged)
	}
	return place, record, err
}

func placeOf(dir string, staged stagedDisk) stagedPlace {
	return stagedPlace{diskFolder{dir: dir, system: staged.Staging, node: filepath.Join(staged.Staging, "device")}, staged}
}

func (p stagedPlace) stagedFile() string { return filepath.Join(p.dir, "staged") }
