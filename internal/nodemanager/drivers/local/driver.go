// Package local implements the node side of the driver for local volumes, which are directories
// and images of the node. Package csi calls it for a kubelet. On a node without one, the volume
// type for csi volumes does.
//
// Stage binds a directory at the staging path, or mounts the file system of an image there from a
// loop device. Publish binds that for each pod. The driver creates and deletes no volume, and
// never formats an image.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// Driver implements drivers.Driver for local volumes. It binds a directory at the staging path,
// and mounts the file system of an image there. For an image that pods see as a device, the
// staging path is an ImageFolder; the loop device stays until Unstage.
type Driver struct {
	local   Volumes
	images  *images
	records volumes.Records[stagedLocal]
}

// stagedLocal records which volume is staged, and where. The driver writes it before it makes
// anything, and removes it when nothing of the volume is left.
type stagedLocal struct {
	// Path is the volume's directory, and Staging the kubelet's.
	Path    string `json:"path"`
	Staging string `json:"staging"`
	// Image: the volume is an image. Block: pods see that as a device.
	Image bool `json:"image,omitempty"`
	Block bool `json:"block,omitempty"`
}

// New returns the driver. Its records lie in folder, which is the agent's own; New makes it if it
// doesn't exist.
func New(mounter mount.Mounter, systems filesystem.FileSystems, local Volumes, folder string) (*Driver, error) {
	records, err := volumes.NewRecords[stagedLocal](folder)
	if err != nil {
		return nil, err
	}
	return &Driver{local: local, images: &images{mounter: mounter, systems: systems}, records: records}, nil
}

// WithOwner has file systems mounted with the SELinux labels of their pods, if the caller says
// which pod it is. Call it before any other method.
func (s *Driver) WithOwner(owner ownership.Owner) *Driver {
	s.images.owner = owner
	return s
}

// Name returns the driver's name.
func (*Driver) Name() string { return stowagev1alpha1.LocalDriver }

// Stage makes a volume usable on the node.
func (s *Driver) Stage(ctx context.Context, spec volumes.Spec, staging string) error {
	volume := spec.PersistentVolume
	source, err := s.local.Open(ctx, volume)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() && spec.IsBlock() {
		return fmt.Errorf("%w: %w", volumes.ErrInvalid, errNoDevice)
	}
	path := volume.Spec.CSI.VolumeAttributes[stowagev1alpha1.PathAttribute]
	record := stagedLocal{Path: path, Staging: staging, Image: !info.IsDir(), Block: spec.IsBlock()}
	// First, so that no record is left of what is refused.
	if err := s.refuseOther(source, record); err != nil {
		return err
	}
	if err := s.recordStaged(spec.Name(), record); err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return s.stageDirectory(source, spec, staging)
	case record.Block:
		return s.stageDevice(ctx, source, staging)
	}
	if err := s.images.stage(ctx, source, spec, staging); err != nil {
		return err
	}
	return mounting.CheckStagedAs(s.images.mounter, mounting.SystemAccess(spec.PersistentVolume), staging)
}

// recordStaged records where a volume is staged. It refuses a volume that is mounted elsewhere,
// or is a device there and is to be a file system, or the other way round.
func (s *Driver) recordStaged(handle string, wanted stagedLocal) error {
	earlier, err := s.records.Find(handle)
	if err != nil || earlier != nil && *earlier == wanted {
		return err
	}
	if earlier != nil {
		table, err := s.images.mounter.Table()
		if err != nil {
			return err
		}
		if len(table.Below(earlier.Staging)) > 0 {
			return fmt.Errorf("volume %s is staged at %s: %w", handle, earlier.Staging, volumes.ErrOtherVolume)
		}
	}
	return s.records.Write(handle, wanted)
}

// refuseOther returns volumes.ErrOtherVolume if something else is at the staging path: another
// volume, or a device instead of a file system, or vice versa.
func (s *Driver) refuseOther(source *os.File, wanted stagedLocal) error {
	table, err := s.images.mounter.Table()
	if err != nil {
		return err
	}
	at, otherwise := wanted.Staging, ImageFolder(wanted.Staging).image()
	if wanted.Block {
		at, otherwise = otherwise, at
	}
	same := true
	if point, mounted := table.At(at); mounted {
		same, err = wanted.isShownBy(point, source)
	}
	if err == nil && (!same || table.IsMountPoint(otherwise)) {
		err = fmt.Errorf("staging at %s: %w", wanted.Staging, volumes.ErrOtherVolume)
	}
	return err
}

// isShownBy reports whether a mount is of the volume's directory, or image.
func (r stagedLocal) isShownBy(point mount.Point, source *os.File) (bool, error) {
	if r.Image && !r.Block {
		loop, err := loopdev.LoopAt(point.Device)
		if loop == nil || err != nil {
			return false, err
		}
		defer loop.Close()
		return loopdev.IsBackedBy(loop.Path(), source)
	}
	wanted, err := source.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(point.Path)
	return err == nil && os.SameFile(wanted, there), err
}

// stageDirectory binds a directory at the staging path, unless it is being copied. A copy
// announces itself before it checks where the directory is mounted: either the copy or
// stageDirectory sees the other.
func (s *Driver) stageDirectory(source *os.File, spec volumes.Spec, staging string) error {
	mounter := s.images.mounter
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	// A directory that was staged before may have pods, and no copy of it can have begun.
	before := table.IsMountPoint(staging)
	access := mount.ReadWrite
	if mounting.IsForReadersOnly(spec.PersistentVolume) {
		access = mount.ReadOnly
	}
	if err := volumes.BindExactly(mounter, source, staging, access); err != nil {
		return err
	}
	err = s.local.Guards(spec.PersistentVolume)
	if err != nil && !before {
		err = errors.Join(err, mounter.Unmount(staging))
	}
	return err
}

// stageDevice binds the image in the staging path, which says which image it is, and attaches a
// loop device to it.
func (s *Driver) stageDevice(ctx context.Context, image *os.File, staging string) error {
	if err := volumes.BindFileExactly(s.images.mounter, image, ImageFolder(staging).image(), mount.ReadWrite); err != nil {
		return err
	}
	loop, err := loopdev.Attach(ctx, image, loopdev.ForBlock)
	if err != nil {
		return err
	}
	return loop.Close()
}

// Publish makes a staged volume visible for one pod.
func (s *Driver) Publish(ctx context.Context, spec volumes.Spec, staging, target string) error {
	if !spec.IsBlock() {
		return mounting.PublishStaged(s.images.mounter, spec, staging, target)
	}
	image, err := s.openStaged(staging)
	if err != nil {
		return err
	}
	if image == nil {
		return fmt.Errorf("publishing volume %s: no image is staged at %s: %w", spec.Name(), staging, volumes.ErrNotStaged)
	}
	defer image.Close()
	if err := s.refuseSecondPod(spec, image, target); err != nil {
		return err
	}
	return s.images.bindDevice(ctx, image, ImageFolder(staging), target, mounting.DeviceAccess(spec))
}

func (s *Driver) refuseSecondPod(spec volumes.Spec, image *os.File, target string) error {
	table, err := s.images.mounter.Table()
	if err != nil {
		return err
	}
	loop, err := loopdev.Find(image)
	if loop == nil || err != nil {
		return err
	}
	defer loop.Close()
	users, err := s.images.usersOf("", loop)
	if err != nil {
		return err
	}
	return mounting.RefuseSecondPod(spec, table.IsMountPoint(target), users)
}

// openStaged opens the image that is bound in a staging path; nil if none is.
func (s *Driver) openStaged(staging string) (*os.File, error) {
	table, err := s.images.mounter.Table()
	if err != nil || !table.IsMountPoint(ImageFolder(staging).image()) {
		return nil, err
	}
	return ImageFolder(staging).open()
}

// Unpublish unmounts a volume from a pod. A device becomes read-only if no other pod may write
// it.
func (s *Driver) Unpublish(_ context.Context, handle, target string) error {
	if err := mount.UnmountBelow(s.images.mounter, target); err != nil {
		return err
	}
	// Before target goes: without it, the caller doesn't try again.
	record, err := s.records.Find(handle)
	if err == nil && record != nil && record.Block {
		err = s.protect(ImageFolder(record.Staging))
	}
	if err != nil {
		return err
	}
	return volumes.RemovePoint(target)
}

func (s *Driver) protect(folder ImageFolder) error {
	loop, err := find(folder)
	if loop == nil || err != nil {
		return err
	}
	defer loop.Close()
	users, err := s.images.usersOf(folder.mount(), loop)
	if err != nil {
		return err
	}
	return protect(loop, users)
}

var errNoDevice = fmt.Errorf("a volume that is a directory can't be a device: use layout Image for volumeMode Block: %w", volumes.ErrNotSupported)
