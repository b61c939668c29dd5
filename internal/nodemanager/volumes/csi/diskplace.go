package csi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/volume"
)

// diskPlace is where a disk is shown for all pods of the node. It is named after the
// volume, as its directories in pods' are: they lead here when all else is gone.
type diskPlace struct {
	// dir has what is known of the disk.
	dir string
	// system is where the file system is mounted, and node what the device is mounted on.
	system, node string
}

func newDiskPlace(dir string) diskPlace {
	return diskPlace{dir: dir, system: filepath.Join(dir, "mount"), node: filepath.Join(dir, "device")}
}

// recordFile tells which disk is shown here: all that the mount table shows of one is
// a number. halfFile says that its file system isn't made yet: see ensureSystem.
func (p diskPlace) recordFile() string { return filepath.Join(p.dir, "disk") }
func (p diskPlace) halfFile() string   { return filepath.Join(p.dir, "formatting") }

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
		Block: spec.IsBlock(), ForReaders: isForReadersOnly(volume), Disk: disk.DiskIdentity,
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
func (p diskPlace) record() (*diskRecord, error) { return readRecord[diskRecord](p.recordFile()) }

// half is the disk whose file system is being made; nil if none is.
func (p diskPlace) half() (*diskRecord, error) { return readRecord[diskRecord](p.halfFile()) }

func readRecord[T any](path string) (*T, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	record := new(T)
	if err == nil {
		err = json.Unmarshal(content, record)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which disk is mounted: %w", err)
	}
	return record, nil
}

// write writes a record, of which nobody ever sees half.
func (p diskPlace) write(path string, record any) error {
	if err := os.MkdirAll(p.dir, mountPointMode); err != nil {
		return fmt.Errorf("making the place of the volume: %w", err)
	}
	content, err := json.Marshal(record)
	if err != nil {
		return err
	}
	unfinished := path + ".new"
	if err := writeDurably(unfinished, content); err != nil {
		return fmt.Errorf("noting which disk is mounted: %w", err)
	}
	return os.Rename(unfinished, path)
}

func writeDurably(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// remove removes what is left of the place. Nothing may be mounted there.
func (p diskPlace) remove() error {
	if err := volumes.RemoveEmptyDir(p.system); err != nil {
		return err
	}
	return p.forget(p.node)
}

// forget removes what is known of the disk, and other files first. The record goes last of
// what it speaks of: while it is there, the disk counts as in use.
func (p diskPlace) forget(first ...string) error {
	for _, file := range append(first, p.halfFile(), p.halfFile()+".new", p.recordFile()+".new", p.recordFile()) {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing what was known of a disk: %w", err)
		}
	}
	return volumes.RemoveEmptyDir(p.dir)
}
