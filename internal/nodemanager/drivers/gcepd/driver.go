// Package gcepd is the node side of the driver of disks that a cloud attaches to nodes. Package
// csi calls it for a kubelet, and the volume type for csi volumes on a node without one.
//
// The file system is mounted at the staging path, or the device in it, and bound for each pod. A
// disk is known by its serial and by the kernel's sequence number, and is formatted only if it is
// empty. Its record is written before it is touched and removed after it is unmounted: until
// then it counts as in use. It attaches and detaches nothing.
package gcepd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// diskPatience is how long a disk is waited for that is said to be attached.
const diskPatience = 10 * time.Second

// errOnlyToRead says that a disk can't be written that is to be.
var errOnlyToRead = errors.New("the volume's disk is attached to this node for reading only, and the volume is to be written: " +
	"give the volume access mode ReadOnlyMany alone, or have its disk attached for writing")

// Driver is the driver of disks that were attached to this node: the file system is
// mounted at the staging path, or the device in it, and bound for each pod. A folder of the
// agent's own has which disk it is, and where it is staged and published: when a disk is
// gone, its number may be another one's.
type Driver struct {
	Options
	driver string
	// noting lets one call at a time read where disks are staged, and write that.
	noting sync.Mutex
	// adopting lets one call at a time take over what the layout before mounted.
	adopting sync.Mutex
}

// Options are what a DiskStaging is made of.
type Options struct {
	// Mounter mounts, and Systems makes file systems.
	Mounter mounting.Mounter
	Systems filesystem.FileSystems
	// Finder finds the disks.
	Finder clouddisk.DiskFolder
	// Folder is the driver's own, for its records. It is made if it doesn't exist.
	Folder string
	// Earlier is the folder in which agents of the layout before mounted disks for pods;
	// "" on nodes with a kubelet.
	Earlier string
	// Owner has file systems mounted with the SELinux labels of their pods, where the caller
	// says which pod it is.
	Owner ownership.Owner
}

// New returns the driver of a name.
func New(driver string, options Options) (*Driver, error) {
	if err := os.MkdirAll(options.Folder, mounting.MountPointMode); err != nil {
		return nil, fmt.Errorf("making the folder of the records of disks: %w", err)
	}
	// A crash may have left it empty.
	_ = unix.Rmdir(options.Earlier)
	// The mount table shows paths without symlinks, and is compared with this.
	if resolved, err := filepath.EvalSymlinks(options.Earlier); err == nil {
		options.Earlier = resolved
	}
	return &Driver{Options: options, driver: driver}, nil
}

// Name is the driver's.
func (s *Driver) Name() string { return s.driver }

// Drivers is the same, as a list.
func (s *Driver) Drivers() []string { return []string{s.driver} }

// Serves reports whether a volume is a disk of the driver, which must be attached to the node
// first.
func (s *Driver) Serves(volume *corev1.PersistentVolume) bool {
	return volume != nil && volume.Spec.CSI != nil && volume.Spec.CSI.Driver == s.driver
}

// Watch reports when disks came or went, until the context ends.
func (s *Driver) Watch(ctx context.Context, report func()) error {
	return s.Finder.Watch(ctx, report)
}

// InUse is the disks that have a record: none of them may be detached.
func (s *Driver) InUse() ([]corev1.UniqueVolumeName, error) {
	// What is taken over meanwhile is in one of both: it gets its record before it loses the
	// one of the layout before.
	earlier, err := placesIn(s.Earlier)
	if err != nil {
		return nil, err
	}
	places, err := placesIn(s.Folder)
	if err != nil {
		return nil, err
	}
	var names []corev1.UniqueVolumeName
	for _, place := range append(earlier, places...) {
		record, err := place.record()
		if err != nil {
			return nil, err
		}
		if record != nil && !slices.Contains(names, record.name()) {
			names = append(names, record.name())
		}
	}
	return names, nil
}

// open finds the disk of a volume, and waits for it if it is about to appear.
func (s *Driver) open(ctx context.Context, spec volumes.Spec) (*clouddisk.Disk, error) {
	if spec.Attachment == nil {
		return nil, errors.New("looking for the volume's disk: nothing says how it is found, as it isn't attached to this node")
	}
	ctx, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	disk, err := s.Finder.Await(ctx, spec.Attachment.Device, spec.Attachment.Serial)
	if err != nil {
		return nil, fmt.Errorf("looking for the volume's disk, which is said to be attached to this node: %w", err)
	}
	return partOf(disk, spec.PersistentVolume)
}

func (s *Driver) dirOf(handle string) string {
	return filepath.Join(s.Folder, mounting.HashOf(handle))
}

// find finds what is known of a disk; the record is nil if that is nothing.
func (s *Driver) find(handle string) (stagedPlace, *diskRecord, error) {
	return readStaged(s.dirOf(handle))
}
