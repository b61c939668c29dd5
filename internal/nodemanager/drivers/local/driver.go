// Package local is the node side of the driver of local volumes, which are directories and
// images of the node. Package csi calls it for a kubelet, and the volume type for csi volumes on
// a node without one.
//
// A directory is bound at the staging path, the file system of an image is mounted there from a
// loop device, and each is bound for each pod. It makes and removes no volume, and never formats
// an image.
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

// Driver is the local driver: a directory is bound at
// the staging path, and the file system in an image mounted there. Of an image that pods
// see as a device, the staging path is a place that has the note which image it is; its
// loop device stays until it is unstaged.
type Driver struct {
	local   Volumes
	images  *images
	records volumes.Records[stagedLocal]
}

// stagedLocal is which volume is staged, and where. It is written before anything is made,
// and removed when nothing of it is left.
type stagedLocal struct {
	// Path is the volume's directory, and Staging the kubelet's.
	Path    string `json:"path"`
	Staging string `json:"staging"`
	// Image is set for one that is an image, and Block if pods see that as a device.
	Image bool `json:"image,omitempty"`
	Block bool `json:"block,omitempty"`
}

// New returns what serves the kubelet's calls. Its records lie in a folder of
// the agent's own, which is made if it doesn't exist.
func New(mounter mount.Mounter, systems filesystem.FileSystems, local Volumes, folder string) (*Driver, error) {
	records, err := volumes.NewRecords[stagedLocal](folder)
	if err != nil {
		return nil, err
	}
	return &Driver{local: local, images: &images{mounter: mounter, systems: systems}, records: records}, nil
}

// WithOwner has file systems mounted with the SELinux labels of their pods, where the caller
// says which pod it is. It comes before the first call.
func (s *Driver) WithOwner(owner ownership.Owner) *Driver {
	s.images.owner = owner
	return s
}

// Name is the driver's.
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
	// First, so that nothing is noted of what is refused.
	if err := s.refuseOther(source, record); err != nil {
		return err
	}
	if err := s.note(spec.Name(), record); err != nil {
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

// note remembers where a volume is staged, unless something is shown of it elsewhere, or
// it is a device there and is to be none, or the other way round.
func (s *Driver) note(handle string, wanted stagedLocal) error {
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

// refuseOther is volumes.ErrOtherVolume if something else is at the staging path: another
// volume, or a device where a file system is to be, or the other way round.
func (s *Driver) refuseOther(source *os.File, wanted stagedLocal) error {
	table, err := s.images.mounter.Table()
	if err != nil {
		return err
	}
	at, otherwise := wanted.Staging, Place(wanted.Staging).image()
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

// isShownBy says whether a mount is of the volume's directory, or image.
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

// stageDirectory shows a directory at the staging path, unless it is being copied: who
// copies one says so first, and then looks who sees it.
func (s *Driver) stageDirectory(source *os.File, spec volumes.Spec, staging string) error {
	mounter := s.images.mounter
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	// One that was staged before may have pods, and nobody can have begun to copy it.
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

// stageDevice notes which image the staging path is the place of, and gives it its loop
// device.
func (s *Driver) stageDevice(ctx context.Context, image *os.File, staging string) error {
	if err := volumes.BindFileExactly(s.images.mounter, image, Place(staging).image(), mount.ReadWrite); err != nil {
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
	image, err := s.noted(staging)
	if err != nil {
		return err
	}
	if image == nil {
		return fmt.Errorf("publishing volume %s: no image is noted at %s: %w", spec.Name(), staging, volumes.ErrNotStaged)
	}
	defer image.Close()
	if err := s.refuseSecondPod(spec, image, target); err != nil {
		return err
	}
	return s.images.bindDevice(ctx, image, Place(staging), target, mounting.DeviceAccess(spec))
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

// noted opens the image that a staging path is the place of; nil if it is of none.
func (s *Driver) noted(staging string) (*os.File, error) {
	table, err := s.images.mounter.Table()
	if err != nil || !table.IsMountPoint(Place(staging).image()) {
		return nil, err
	}
	return Place(staging).noted()
}

// Unpublish takes a volume away from a pod. A device may have to be kept from being
// written from then on.
func (s *Driver) Unpublish(_ context.Context, handle, target string) error {
	if err := mount.UnmountBelow(s.images.mounter, target); err != nil {
		return err
	}
	// Before target goes, which is what has this called again.
	record, err := s.records.Find(handle)
	if err == nil && record != nil && record.Block {
		err = s.protect(Place(record.Staging))
	}
	if err != nil {
		return err
	}
	return volumes.RemovePoint(target)
}

func (s *Driver) protect(place Place) error {
	loop, err := find(place)
	if loop == nil || err != nil {
		return err
	}
	defer loop.Close()
	users, err := s.images.usersOf(place.mount(), loop)
	if err != nil {
		return err
	}
	return protect(loop, users)
}

var errNoDevice = fmt.Errorf("a volume that is a directory can't be a device: use layout Image for volumeMode Block: %w", volumes.ErrNotSupported)
