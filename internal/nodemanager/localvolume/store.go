package localvolume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

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
	// Owner is the claim that it was made for.
	Owner stowagev1alpha1.ClaimReference
	// Bytes is the capacity that it is asked to have, Has what it was given, 0 where
	// nobody knows, and Reserved what must stay free on its disk.
	Bytes, Has, Reserved int64
	// Used is how much of a directory was used when that was counted last, 0 where nobody
	// knows.
	Used int64
	// Provisioned: it was made before, and nothing of it was removed. Removing: it was made
	// before, and is being removed. Copy: it began as a copy of another.
	Provisioned, Removing, Copy bool
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

// Base is the directory below which a node's local volumes lie. It must exist: a missing
// one may be a disk that isn't mounted.
type Base string

// Open opens a folder below the base without following symlinks. A path that isn't below
// it is mount.ErrOutside.
func (b Base) open(path string) (*os.File, error) { return mount.OpenBeneath(string(b), path) }

// Store makes and removes the directories and images of volumes below one base
// directory.
type Store struct {
	// Base is where all volumes lie.
	Base Base
	// Disks recognises the disks that folders lie on.
	Disks Disks
	// Rooms gives room of disks to volumes.
	Rooms *Rooms
	// FileSystems makes those in images.
	FileSystems device.FileSystems
	// Slice is how long files are removed before others have their turn. Default: two
	// seconds.
	Slice time.Duration

	// copies are the volumes that are being copied.
	copies copies
}

// NewStore returns a store of the volumes below a base directory.
func NewStore(base string, systems device.FileSystems) *Store {
	return &Store{Base: Base(base), Disks: Disks{Base: Base(base)}, Rooms: NewRooms(Base(base)), FileSystems: systems}
}

// Exists says whether a volume's directory is there, and in it its image, if it is
// one.
func (b Base) Exists(volume Volume) (bool, error) {
	dir, err := b.open(volume.directory())
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

// Lister lists the node's other volumes. The store calls it while it is the disk's
// turn, so that it tells of every volume that was given room of it before.
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

// makeDirectory makes an empty directory. It is there for others when their turn comes;
// that it survives a loss of power is waited for afterwards, at the same time as for
// theirs. The crash that an older one comes from may have been before that was done.
func (s *Store) makeDirectory(ctx context.Context, volume Volume, others Lister) error {
	exists, err := s.Base.Exists(volume)
	if err != nil {
		return err
	}
	folder, err := s.Disks.folderOf(volume)
	if err != nil {
		return err
	}
	defer folder.Close()
	if !exists {
		if err := s.makeBeside(ctx, folder, volume, others); err != nil {
			return err
		}
	}
	return mount.SyncDir(folder)
}

// makeBeside makes a directory that isn't there.
func (s *Store) makeBeside(ctx context.Context, folder *os.File, volume Volume, others Lister) error {
	turn, err := s.Rooms.takeTurn(ctx, volume.Path)
	if err != nil {
		return err
	}
	defer turn.end()
	there, err := s.Rooms.roomBeside(turn, folder, volume, others)
	if err != nil {
		return err
	}
	if err := there.checkNew(volume.Bytes); err != nil {
		return err
	}
	return makeDir(ctx, folder, volume)
}
