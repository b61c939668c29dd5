package csi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// DiskStaging is what the kubelet's calls do to disks that were attached to this node: the
// file system is mounted at the staging path, or the device in it, and bound for each pod.
// What is known of a disk is what Disks know, in a folder of the agent's own, and where
// it is shown: when a disk is gone, its number may be another one's.
type DiskStaging struct {
	driver string
	disks  *Disks
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
	diskPlace
	stagedDisk
}

// NewDiskStaging returns what serves the kubelet's calls for one driver. The folder must
// be its own.
func NewDiskStaging(driver string, options DiskOptions) (*DiskStaging, error) {
	options.Drivers = []string{driver}
	disks, err := NewDisks(options)
	return &DiskStaging{driver: driver, disks: disks}, err
}

// Name is the driver's.
func (s *DiskStaging) Name() string { return s.driver }

func (s *DiskStaging) dirOf(handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return filepath.Join(s.disks.folder, hex.EncodeToString(sum[:]))
}

// find finds what is known of a disk; the record is nil if that is nothing.
func (s *DiskStaging) find(handle string) (stagedPlace, *diskRecord, error) {
	return readStaged(s.dirOf(handle))
}

func readStaged(dir string) (stagedPlace, *diskRecord, error) {
	place := stagedPlace{diskPlace: diskPlace{dir: dir}}
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
	return stagedPlace{diskPlace{dir: dir, system: staged.Staging, node: filepath.Join(staged.Staging, "device")}, staged}
}

func (p stagedPlace) stagedFile() string { return filepath.Join(p.dir, "staged") }

// Stage makes a disk usable on the node.
func (s *DiskStaging) Stage(ctx context.Context, spec volumes.Spec, staging string) error {
	disk, err := s.disks.open(ctx, spec)
	if err != nil {
		return err
	}
	// From the mount on, that keeps the disk.
	defer disk.Close()
	record := recordOf(spec, disk)
	place, err := s.note(stagedDisk{Handle: spec.Name(), Staging: staging}, record)
	if err != nil {
		return err
	}
	if record.Block {
		return s.stageDevice(disk, place, record)
	}
	if err := s.disks.stage(ctx, disk, spec, place.diskPlace); err != nil {
		return err
	}
	return checkStagedAs(s.disks.mounter, systemAccess(spec.PersistentVolume), staging)
}

// stageDevice shows a disk's device in the staging directory, so that its number is kept.
func (s *DiskStaging) stageDevice(disk *clouddisk.Disk, place stagedPlace, record diskRecord) error {
	if err := s.disks.refuseReadOnly(disk, place.diskPlace, record); err != nil {
		return err
	}
	node, err := os.OpenFile(disk.Path(), openOnly, 0)
	if err != nil {
		return err
	}
	defer node.Close()
	return volumes.BindFileExactly(s.disks.mounter, node, place.node, mount.ReadWrite)
}

// Publish makes a staged disk visible for one pod.
func (s *DiskStaging) Publish(_ context.Context, spec volumes.Spec, staging, target string) error {
	place, record, err := s.find(spec.Name())
	if err != nil {
		return err
	}
	if record == nil || place.Staging != staging || record.Block != spec.IsBlock() {
		return fmt.Errorf("publishing volume %s: it isn't staged at %s: %w", spec.Name(), staging, volumes.ErrNotStaged)
	}
	disk, err := openStaged(*record)
	if err != nil {
		return fmt.Errorf("publishing volume %s: %w", spec.Name(), err)
	}
	defer disk.Close()
	if err := s.noteTarget(place, target); err != nil {
		return err
	}
	if record.Block {
		return s.publishDevice(spec, disk, place, *record, target)
	}
	return publishStaged(s.disks.mounter, spec, staging, target)
}

// noteTarget notes that a disk is about to be shown at a path, unless something is.
func (s *DiskStaging) noteTarget(place stagedPlace, target string) error {
	table, err := s.disks.mounter.Table()
	if err != nil || table.IsMountPoint(target) || slices.Contains(place.Targets, target) {
		return err
	}
	place.Targets = append(slices.Clone(place.Targets), target)
	return place.write(place.stagedFile(), place.stagedDisk)
}

func (s *DiskStaging) publishDevice(spec volumes.Spec, disk *clouddisk.Disk, place stagedPlace, record diskRecord, target string) error {
	table, err := s.disks.mounter.Table()
	if err != nil {
		return err
	}
	if !table.IsMountPoint(place.node) {
		return fmt.Errorf("publishing volume %s: its device isn't staged at %s: %w", spec.Name(), place.Staging, volumes.ErrNotStaged)
	}
	node, err := os.OpenFile(disk.Path(), openOnly, 0)
	if err != nil {
		return err
	}
	defer node.Close()
	users, err := s.usersOf(place, disk)
	if err != nil {
		return err
	}
	if err := refuseSecondPod(spec, table.IsMountPoint(target), users); err != nil {
		return err
	}
	access := deviceAccess(spec)
	if record.ForReaders {
		access = mount.ReadOnly
	}
	if err := volumes.BindFileExactly(s.disks.mounter, node, target, access); err != nil {
		return err
	}
	return s.protect(place, record, disk)
}

// protect keeps a device from being written while no pod that has it may.
func (s *DiskStaging) protect(place stagedPlace, record diskRecord, disk *clouddisk.Disk) error {
	users, err := s.usersOf(place, disk)
	if err != nil {
		return err
	}
	return protectDisk(disk, record, users)
}

// usersOf is where a disk, or the file system on it, is mounted but where it is staged.
func (s *DiskStaging) usersOf(place stagedPlace, disk *clouddisk.Disk) ([]mount.Point, error) {
	table, err := s.disks.mounter.Table()
	if err != nil {
		return nil, err
	}
	node, err := os.OpenFile(disk.Path(), openOnly, 0)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	shown, err := mount.Visible(node)
	return slices.DeleteFunc(append(table.Shows(disk.Device(), "/"), shown...), func(point mount.Point) bool {
		return point.Path == place.system || point.Path == place.node
	}), err
}
