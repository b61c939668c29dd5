// Package gcepd implements the node side of the driver for disks that a cloud attaches to nodes.
// Package csi calls it for a kubelet. On a node without one, the volume type for csi volumes
// does.
//
// Stage mounts the file system at the staging path, or the device in it, and Publish binds that
// for each pod. The driver knows a disk by its serial and by the kernel's sequence number, and
// formats it only if it is empty. It writes a disk's record before it touches the disk, and
// removes it after the unmount: until then the disk counts as in use. It attaches and detaches
// nothing.
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

// diskPatience is how long open waits until a disk appears that is reported as attached.
const diskPatience = 10 * time.Second

// errOnlyToRead: the volume is to be written, and its disk is attached for reading only.
var errOnlyToRead = errors.New("the volume's disk is attached to this node for reading only, and the volume is to be written: " +
	"give the volume access mode ReadOnlyMany alone, or have its disk attached for writing")

// Driver implements drivers.Driver for disks that are attached to this node. Its own folder
// records which disk is staged, and where it is staged and published. The mount table alone can't
// say so: once a disk is gone, another one may have its number.
type Driver struct {
	Options
	driver string
	// recording serializes reading and writing where disks are staged.
	recording sync.Mutex
	// adopting serializes taking over what agents of the previous layout mounted.
	adopting sync.Mutex
}

// Options are the dependencies of a Driver.
type Options struct {
	// Mounter mounts, and Systems makes file systems.
	Mounter mounting.Mounter
	Systems filesystem.FileSystems
	// Finder finds the disks.
	Finder clouddisk.DiskFolder
	// Folder is the driver's own, for its records. New makes it if it doesn't exist.
	Folder string
	// Earlier is the folder in which agents of the previous layout mounted disks for pods; "" on
	// nodes with a kubelet.
	Earlier string
	// Owner has file systems mounted with the SELinux labels of their pods, if the caller says
	// which pod it is.
	Owner ownership.Owner
}

// New returns the driver of the given name.
func New(driver string, options Options) (*Driver, error) {
	if err := os.MkdirAll(options.Folder, mounting.MountPointMode); err != nil {
		return nil, fmt.Errorf("making the folder of the records of disks: %w", err)
	}
	// A crash may have left it empty.
	_ = unix.Rmdir(options.Earlier)
	// The mount table, with which this is compared, has paths without symlinks.
	if resolved, err := filepath.EvalSymlinks(options.Earlier); err == nil {
		options.Earlier = resolved
	}
	return &Driver{Options: options, driver: driver}, nil
}

// Name returns the driver's name.
func (s *Driver) Name() string { return s.driver }

// Drivers returns the driver's name as a list.
func (s *Driver) Drivers() []string { return []string{s.driver} }

// Serves reports whether a volume is a disk of this driver, which must be attached to the node
// first.
func (s *Driver) Serves(_ context.Context, volume *corev1.PersistentVolume) bool {
	return volume != nil && volume.Spec.CSI != nil && volume.Spec.CSI.Driver == s.driver
}

// Watch reports when disks came or went, until the context ends.
func (s *Driver) Watch(ctx context.Context, report func()) error {
	return s.Finder.Watch(ctx, report)
}

// InUse lists the disks that have a record: none of them may be detached.
func (s *Driver) InUse() ([]corev1.UniqueVolumeName, error) {
	// The previous layout first: a disk that Adopt moves during the call gets its new record before it
	// loses the old one.
	earlier, err := foldersIn(s.Earlier)
	if err != nil {
		return nil, err
	}
	folders, err := foldersIn(s.Folder)
	if err != nil {
		return nil, err
	}
	var names []corev1.UniqueVolumeName
	for _, folder := range append(earlier, folders...) {
		record, err := folder.record()
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
		return nil, errors.New("looking for the volume's disk: it isn't attached to this node")
	}
	ctx, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	disk, err := s.Finder.Await(ctx, spec.Attachment.Device, spec.Attachment.Serial)
	if err != nil {
		return nil, fmt.Errorf("looking for the volume's disk, which is reported as attached to this node: %w", err)
	}
	return partOf(disk, spec.PersistentVolume)
}

func (s *Driver) dirOf(handle string) string {
	return filepath.Join(s.Folder, mounting.HashOf(handle))
}

// find reads the record of a disk; nil if there is none.
func (s *Driver) find(handle string) (stagedFolder, *diskRecord, error) {
	return readStaged(s.dirOf(handle))
}
