package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
	"github.com/stowage-dev/stowage/internal/volume"
)

// diskPatience is how long a disk is waited for that is said to be attached.
const diskPatience = 10 * time.Second

// DiskMounter is a Mounter that can also take away what is in use.
type DiskMounter interface {
	mount.Mounter
	// Detach takes away the topmost mount at path, also one that is in use.
	Detach(path string) error
}

// Disks shows disks that were attached to this node for all of its pods. One thing at
// a time is done to each. A nil one serves no driver.
type Disks struct {
	mounter DiskMounter
	systems filesystem.FileSystems
	finder  clouddisk.DiskFolder
	folder  string
	drivers []string
	owner   ownership.Owner
	turns   volumes.Turns
	// noting lets one at a time look where a disk is shown, and show it.
	noting sync.Mutex
}

// DiskOptions are what Disks are made of.
type DiskOptions struct {
	// Mounter mounts, and Systems makes file systems.
	Mounter DiskMounter
	Systems filesystem.FileSystems
	// Finder finds the disks.
	Finder clouddisk.DiskFolder
	// Folder is one of the agent's own, made if it doesn't exist: below it disks are
	// shown, and what is known of them is written.
	Folder string
	// Drivers are those whose volumes are disks.
	Drivers []string
	// Owner gives what is on them to pods.
	Owner ownership.Owner
}

// NewDisks returns Disks.
func NewDisks(options DiskOptions) (*Disks, error) {
	if err := os.MkdirAll(options.Folder, mountPointMode); err != nil {
		return nil, fmt.Errorf("making the folder of disks: %w", err)
	}
	// The mount table shows paths without symlinks, and is compared with these.
	resolved, err := filepath.EvalSymlinks(options.Folder)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of disks: %w", err)
	}
	return &Disks{
		mounter: options.Mounter, systems: options.Systems, finder: options.Finder, folder: resolved, drivers: options.Drivers,
		owner: options.Owner,
	}, nil
}

// Serves says whether a volume is a disk, which must be attached to the node first.
func (d *Disks) Serves(volume *corev1.PersistentVolume) bool {
	return d != nil && volume != nil && volume.Spec.CSI != nil && slices.Contains(d.drivers, volume.Spec.CSI.Driver)
}

// Drivers is the names of those whose volumes are disks.
func (d *Disks) Drivers() []string { return d.drivers }

// InUse is the disks that anything on this node is known of: none of them may be
// detached.
func (d *Disks) InUse() ([]corev1.UniqueVolumeName, error) {
	places, err := d.places()
	if err != nil {
		return nil, err
	}
	var names []corev1.UniqueVolumeName
	for _, place := range places {
		record, err := place.record()
		if err != nil {
			return nil, err
		}
		if record != nil {
			names = append(names, volume.UniqueName(record.Driver, record.Handle))
		}
	}
	return names, nil
}

// Watch tells when disks came or went, until the context ends.
func (d *Disks) Watch(ctx context.Context, tell func()) error { return d.finder.Watch(ctx, tell) }

func (d *Disks) at(volume string) diskPlace { return newDiskPlace(filepath.Join(d.folder, volume)) }

// places are all places where a disk is shown, or was about to be.
func (d *Disks) places() ([]diskPlace, error) {
	entries, err := os.ReadDir(d.folder)
	if err != nil {
		return nil, fmt.Errorf("listing the disks that are shown: %w", err)
	}
	places := make([]diskPlace, 0, len(entries))
	for _, entry := range entries {
		places = append(places, d.at(entry.Name()))
	}
	return places, nil
}

func (d *Disks) acquire(ctx context.Context, volume string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	if release, err = d.turns.Acquire(ctx, volume); err != nil {
		return nil, errTurn
	}
	return release, nil
}

// open finds the disk of a volume, and waits for it if it is about to appear.
func (d *Disks) open(ctx context.Context, spec volumes.Spec) (*clouddisk.Disk, error) {
	if spec.Attachment == nil {
		return nil, errors.New("looking for the volume's disk: nothing says how it is found, as it isn't attached to this node")
	}
	ctx, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	disk, err := d.finder.Await(ctx, spec.Attachment.Device, spec.Attachment.Serial)
	if err != nil {
		return nil, fmt.Errorf("looking for the volume's disk, which is said to be attached to this node: %w", err)
	}
	return partOf(disk, spec.PersistentVolume)
}
