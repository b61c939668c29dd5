package localvolume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

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
	// Provisioned: it was made before.
	Provisioned bool
}

// directory is where the volume lies.
func (v Volume) directory() string { return filepath.Join(v.Path, v.Name) }

// Store makes and removes the directories of volumes below one base directory.
type Store struct {
	// Base must exist: a missing one may be a disk that isn't mounted.
	Base string

	// making lets one volume at a time be given room.
	making sync.Mutex
	// granted is the growth that was given, by the volumes' names: what LocalVolumes
	// say of it may not be written, or seen, yet.
	granted map[string]int64
}

// Exists says whether a volume's directory is there.
func (s *Store) Exists(volume Volume) (bool, error) {
	dir, err := mount.OpenBeneath(s.Base, volume.directory())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, dir.Close()
}

// Lister lists the node's other volumes. The store calls it under its lock, so
// that it tells of every volume that was given room before.
type Lister func() ([]Volume, error)

// Make makes a volume's directory, if there is room for it beside the others of
// the node. One that is there already is taken as it is: its name contains the
// claim's UID, so it was made for this volume before a crash.
func (s *Store) Make(volume Volume, others Lister) error {
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
	return s.makeBeside(volume, listed)
}

// makeBeside makes a directory that isn't there.
func (s *Store) makeBeside(volume Volume, others []Volume) error {
	if err := s.checkDiskIsThere(volume, others); err != nil {
		return err
	}
	folder, err := s.ensureFolder(volume.Path)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := s.checkRoom(folder, volume, others); err != nil {
		return err
	}
	if err := mount.EnsureDir(folder, volume.Name, volumeMode); err != nil {
		return err
	}
	return mount.SyncDir(folder)
}

// adopt makes sure that a directory which is there survives a loss of power: the
// crash that it comes from may have been before that was done.
func (s *Store) adopt(volume Volume) error {
	folder, err := s.ensureFolder(volume.Path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return mount.SyncDir(folder)
}

// Remove removes a volume with its data. It refuses while the volume is mounted
// anywhere. A volume that isn't there is a success, unless its whole folder is
// missing although it was provisioned.
func (s *Store) Remove(ctx context.Context, volume Volume) error {
	folder, err := mount.OpenBeneath(s.Base, volume.Path)
	if errors.Is(err, os.ErrNotExist) && !volume.Provisioned {
		return nil
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: folder %s is missing: mount the disk again, or create the folder if the data is gone for good", errNoDisk, volume.Path)
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := refuseInUse(folder, volume.Name); err != nil {
		return err
	}
	deleting, err := mount.Retire(folder, volume.Name)
	if err != nil {
		return err
	}
	defer deleting.Close()
	// Whoever mounts volumes by their path may have been quicker than the move.
	// From now on nobody can, and this answer holds.
	if err := refuseInUse(deleting, volume.Name); err != nil {
		return err
	}
	if err := mount.RemoveTree(ctx, deleting, volume.Name); err != nil {
		return err
	}
	s.forget(volume)
	return mount.RemoveUnfinished(folder, volume.Name)
}

// refuseInUse is an error if a directory is mounted somewhere or holds a mount.
func refuseInUse(folder *os.File, name string) error {
	dir, err := mount.OpenAt(folder, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	points, err := mount.Visible(dir)
	if err != nil {
		return err
	}
	if len(points) > 0 {
		return fmt.Errorf("%w: it is mounted at %s", errInUse, points[0].Path)
	}
	return nil
}

// checkDiskIsThere refuses to make a volume where those that were made before
// are all missing: that is a disk which isn't mounted, and what is written there
// would land on the disk below.
func (s *Store) checkDiskIsThere(volume Volume, others []Volume) error {
	missing := ""
	for _, other := range others {
		if other.Path != volume.Path || !other.Provisioned {
			continue
		}
		exists, err := s.Exists(other)
		if err != nil || exists {
			return err
		}
		missing = other.Name
	}
	if missing != "" {
		return fmt.Errorf("%w: volume %s was made in %s and isn't there: mount the disk", errNoDisk, missing, volume.Path)
	}
	return nil
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
