package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// turnPatience is how long a pod waits for another one's turn at a volume.
const turnPatience = time.Minute

// errTurn says that something else is still at work on a volume.
var errTurn = errors.New("another mount, unmount or growth of the same volume isn't over")

// Images shows images for all pods of the node. One thing at a time is done to each.
type Images struct {
	mounter mount.Mounter
	systems filesystem.FileSystems
	folder  string
	owner   ownership.Owner
	turns   volumes.Turns
	// noting lets one at a time look where an image is shown, and show it.
	noting sync.Mutex
}

// NewImages returns Images that are shown below a folder of the agent's own, which is
// made if it doesn't exist.
func NewImages(mounter mount.Mounter, systems filesystem.FileSystems, folder string) (*Images, error) {
	if err := os.MkdirAll(folder, mountPointMode); err != nil {
		return nil, fmt.Errorf("making the folder of images: %w", err)
	}
	// The mount table shows paths without symlinks, and is compared with these.
	resolved, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of images: %w", err)
	}
	return &Images{mounter: mounter, systems: systems, folder: resolved}, nil
}

// WithOwner has volumes given to pods by an owner. It comes before the first is shown.
func (i *Images) WithOwner(owner ownership.Owner) *Images {
	i.owner = owner
	return i
}

func (i *Images) at(volume string) place { return place(filepath.Join(i.folder, volume)) }

func (i *Images) acquire(ctx context.Context, volume string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	if release, err = i.turns.Acquire(ctx, volume); err != nil {
		return nil, errTurn
	}
	return release, nil
}

// publish makes the file system in an image visible at target.
func (i *Images) publish(ctx context.Context, image *os.File, spec volumes.Spec, target string) error {
	release, err := i.acquire(ctx, spec.Name())
	if err != nil {
		return err
	}
	defer release()
	place := i.at(spec.Name())
	if err := i.note(place, image); err != nil {
		return err
	}
	if err := i.stage(ctx, image, spec, place.mount()); err != nil {
		return err
	}
	source, err := os.OpenFile(place.mount(), openOnly, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := give(ctx, i.owner, spec, source); err != nil {
		return err
	}
	return volumes.Bind(i.mounter, source, target, spec.Access)
}

// note remembers that an image is shown at a place, unless it is at another one: two
// volume objects with one image would each take the other for a pod that uses it, and
// neither would ever be taken away.
func (i *Images) note(place place, image *os.File) error {
	i.noting.Lock()
	defer i.noting.Unlock()
	points, err := mount.Visible(image)
	if err != nil {
		return err
	}
	for _, point := range points {
		other := filepath.Dir(point.Path)
		if filepath.Dir(other) == i.folder && other != string(place) {
			return fmt.Errorf("the image is mounted for volume %s, which is another object for the same storage: use one of the two: %w",
				filepath.Base(other), mount.ErrMounted)
		}
	}
	return place.note(i.mounter, image)
}

// grow makes what is shown of a volume as large as its image, and returns that size.
func (i *Images) grow(ctx context.Context, volume string) (int64, error) {
	release, err := i.acquire(ctx, volume)
	if err != nil {
		return 0, err
	}
	defer release()
	place := i.at(volume)
	loop, err := find(place)
	if err != nil {
		return 0, err
	}
	if loop == nil {
		return 0, fmt.Errorf("growing volume %s: %w", volume, errTakenAway)
	}
	defer loop.Close()
	if err := loop.Resize(); err != nil {
		return 0, err
	}
	if err := growSystem(ctx, i.mounter, i.systems, loop.Path(), place.mount()); err != nil {
		return 0, err
	}
	info, err := os.Stat(place.image())
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// growSystem grows the file system on a device, if one is mounted.
func growSystem(ctx context.Context, mounter mount.Mounter, systems filesystem.FileSystems, path, at string) error {
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(at)
	if !mounted {
		return nil
	}
	err = systems.Grow(ctx, path, at, staged.FSType)
	if errors.Is(err, device.ErrUnknownType) {
		return fmt.Errorf("%w: %w", err, volumes.ErrNotSupported)
	}
	return err
}
