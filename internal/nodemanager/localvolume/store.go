package localvolume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount"
)

// Modes of directories. Pods run as any user, so a volume is open to all; the
// folder around it is closed to all but root, so that other users of the node
// can't get at volumes. Pods reach theirs by a mount, not by that path.
const (
	folderMode = 0o700
	volumeMode = 0o777
)

// Kinds of errors of a Store.
var (
	errExhausted = errors.New("no room on the disk")
	errInUse     = errors.New("the volume is in use")
	errNoDisk    = errors.New("the disk isn't there")
)

// Volume is a volume as a Store sees it.
type Volume struct {
	// Path is the folder of its backend; Name is its directory in it.
	Path, Name string
	// Bytes is the capacity that it is asked to have, Has what it was given, 0 where
	// nobody knows, and Reserved what must stay free on its disk.
	Bytes, Has, Reserved int64
	// Used is how much of a directory was used when that was counted last, 0 where nobody
	// knows.
	Used int64
	// Provisioned: it was made before. Copy: it began as a copy of another.
	Provisioned, Copy bool
	// Image is set for one that is an image, and not a plain directory.
	Image *Image
	// Source is what it begins as a copy of, a volume of its kind; nil: it is to be empty.
	Source *Volume
	// Disk is the one that it lies on, or is to: nothing of the volume is made or
	// removed on another. Nil: whichever is there.
	Disk *stowagev1alpha1.DiskIdentity
}

// directory is where the volume lies.
func (v Volume) directory() string { return filepath.Join(v.Path, v.Name) }

// image is where its image lies, if it is one.
func (v Volume) image() string { return filepath.Join(v.directory(), stowagev1alpha1.ImageFile) }

// Store makes and removes the directories and images of volumes below one base
// directory.
type Store struct {
	// Base must exist: a missing one may be a disk that isn't mounted.
	Base string
	// FileSystems makes those in images.
	FileSystems device.FileSystems

	// making lets one volume at a time be given room.
	making sync.Mutex
	// granted is the growth that was given, by the volumes' names: what LocalVolumes
	// say of it may not be written, or seen, yet.
	granted map[string]int64
	// drafts are the volumes, by their names, that were given room and don't have their
	// directories yet.
	drafts map[string]*draft
	// copies are the volumes that are being copied.
	copies copies
}

// Exists says whether a volume's directory is there, and in it its image, if it is
// one.
func (s *Store) Exists(volume Volume) (bool, error) {
	dir, err := mount.OpenBeneath(s.Base, volume.directory())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	if volume.Image == nil {
		return true, nil
	}
	image, err := mount.OpenFileAt(dir, stowagev1alpha1.ImageFile)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, image.Close()
}

// Lister lists the node's other volumes. The store calls it under its lock, so
// that it tells of every volume that was given room before.
type Lister func() ([]Volume, error)

// Make makes a volume's directory, or its image, if there is room for it beside the
// others of the node. The copy of another volume may take long. One that is there
// already is taken as it is: its name contains the claim's UID, so it was made for this
// volume before a crash.
func (s *Store) Make(ctx context.Context, volume Volume, others Lister) error {
	if volume.Image != nil || volume.Source != nil {
		return s.makeWhole(ctx, volume, others)
	}
	return s.makeDirectory(ctx, volume, others)
}

func (s *Store) makeDirectory(ctx context.Context, volume Volume, others Lister) error {
	s.making.Lock()
	defer s.making.Unlock()
	exists, err := s.Exists(volume)
	if err != nil {
		return err
	}
	if exists {
		return s.adopt(volume)
	}
	listed, err := others()
	if err != nil {
		return err
	}
	return s.makeBeside(ctx, volume, listed)
}

// makeBeside makes a directory that isn't there.
func (s *Store) makeBeside(ctx context.Context, volume Volume, others []Volume) error {
	folder, err := s.folderOf(volume)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := s.checkRoom(folder, volume, 0, others); err != nil {
		return err
	}
	if err := makeDir(ctx, folder, volume); err != nil {
		return err
	}
	return mount.SyncDir(folder)
}

// adopt makes sure that a directory which is there survives a loss of power: the
// crash that it comes from may have been before that was done.
func (s *Store) adopt(volume Volume) error {
	folder, err := s.folderOf(volume)
	if err != nil {
		return err
	}
	defer folder.Close()
	return mount.SyncDir(folder)
}

// Remove removes a volume with its data. It refuses while the volume is mounted
// anywhere, or a loop device shows it. A volume that isn't there is a success, unless
// its whole folder is missing although the volume was provisioned, or the folder
// accepted.
func (s *Store) Remove(ctx context.Context, volume Volume) error {
	folder, err := mount.OpenBeneath(s.Base, volume.Path)
	// On a disk that was accepted, and isn't there, a crash may have left half of it.
	if errors.Is(err, os.ErrNotExist) && !volume.Provisioned && volume.Disk == nil {
		return nil
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: folder %s is missing: mount the disk again, or create the folder if the data is gone for good", errNoDisk, volume.Path)
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	if volume.Disk != nil {
		if err := checkIdentity(folder, volume.Disk); err != nil {
			return err
		}
	}
	release, err := refuseInUse(ctx, folder, volume)
	if err != nil {
		return err
	}
	release()
	deleting, err := s.retire(folder, volume)
	if errors.Is(err, os.ErrExist) {
		// An earlier volume of this name was half removed when a crash came.
		if err = mount.RemoveRetired(ctx, folder, volume.Name); err == nil {
			deleting, err = s.retire(folder, volume)
		}
	}
	if err != nil {
		return err
	}
	defer deleting.Close()
	// Whoever mounts volumes by their path may have been quicker than the move.
	// From now on nobody can, and this answer holds.
	release, err = refuseInUse(ctx, deleting, volume)
	if err != nil {
		return err
	}
	defer release()
	if err := dropLimit(deleting, volume); err != nil {
		return err
	}
	if err := mount.RemoveTree(ctx, deleting, volume.Name); err != nil {
		return err
	}
	s.forget(volume)
	return mount.RemoveUnfinished(ctx, folder, volume.Name)
}

// retire moves a volume to where it is removed, unless it is being copied.
func (s *Store) retire(folder *os.File, volume Volume) (deleting *os.File, err error) {
	err = s.copies.unless(volume.directory(), func() (err error) {
		deleting, err = mount.Retire(folder, volume.Name)
		return err
	})
	return deleting, err
}

// refuseInUse is an error if a volume in a folder is mounted somewhere or holds a
// mount, or if a loop device shows its image. None will until release is called.
func refuseInUse(ctx context.Context, folder *os.File, volume Volume) (release func(), err error) {
	dir, err := mount.OpenAt(folder, volume.Name)
	if errors.Is(err, os.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	points, err := mount.Visible(dir)
	if err != nil {
		return nil, err
	}
	if len(points) > 0 {
		return nil, fmt.Errorf("%w: it is mounted at %s", errInUse, points[0].Path)
	}
	if volume.Image == nil {
		return func() {}, nil
	}
	return reserveImage(ctx, dir)
}

// checkDiskIsThere refuses a folder in which those volumes that were made before are
// all missing: that is a disk which isn't mounted, and what is written there would
// land on the disk below.
func (s *Store) checkDiskIsThere(path string, others []Volume) error {
	missing := ""
	for _, other := range others {
		if other.Path != path || !other.Provisioned {
			continue
		}
		exists, err := s.Exists(other)
		if err != nil || exists {
			return err
		}
		missing = other.Name
	}
	if missing != "" {
		return fmt.Errorf("%w: volume %s was made in %s and isn't there: mount the disk", errNoDisk, missing, path)
	}
	return nil
}

// folderOf opens the folder of a volume's backend, on the volume's disk. Where that
// isn't known the folder is made.
func (s *Store) folderOf(volume Volume) (*os.File, error) {
	if volume.Disk != nil {
		return s.openAccepted(volume.Path, volume.Disk)
	}
	return s.ensureFolder(volume.Path)
}

// ensureFolder makes the folder of a backend below the base, and opens it. Its
// name survives a loss of power, as that of the volume in it will.
func (s *Store) ensureFolder(path string) (*os.File, error) {
	folder, err := mount.OpenBeneath(s.Base, s.Base)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s, the base of this node's volumes, is missing: create it, or mount the disk", errNoDisk, s.Base)
	}
	if err != nil {
		return nil, err
	}
	relative, err := filepath.Rel(s.Base, path)
	if err != nil || !filepath.IsLocal(relative) {
		folder.Close()
		return nil, mount.ErrOutside
	}
	if relative == "." {
		return folder, nil
	}
	for _, part := range strings.Split(relative, string(filepath.Separator)) {
		next, err := ensureSubfolder(folder, part)
		folder.Close()
		if err != nil {
			return nil, err
		}
		folder = next
	}
	return folder, nil
}

func ensureSubfolder(folder *os.File, name string) (*os.File, error) {
	if err := mount.EnsureDir(folder, name, folderMode); err != nil {
		return nil, err
	}
	if err := mount.SyncDir(folder); err != nil {
		return nil, err
	}
	return mount.OpenAt(folder, name)
}
