package csi

import (
	"context"
	"path/filepath"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// dataAt is which volume, whose object has a name, a pod has at a place; nil if nothing says
// so. Of what the layout before mounted, and another pod had staged since, it is found out
// and written down: after the unmount nothing would lead there.
func (c *Caller) dataAt(at podPlace, name string) (*volumeData, error) {
	noted, err := at.noted()
	if noted != nil || err != nil {
		return noted, err
	}
	if err := c.adoptAll(); err != nil {
		return nil, err
	}
	if noted, err = at.noted(); noted != nil || err != nil {
		return noted, err
	}
	table, err := c.mounter.Table()
	if err != nil {
		return nil, err
	}
	found, err := c.findStaged(table, at)
	if found == nil && err == nil {
		found, err = c.findBegun(name)
	}
	if found == nil || err != nil {
		return nil, err
	}
	found.Volume, found.Lifecycle = name, persistentUse
	return found, c.note(*found, at)
}

// findBegun finds the volume that an agent of the layout before noted, if a pod that is gone
// began to have it staged; nil if none did.
func (c *Caller) findBegun(name string) (*volumeData, error) {
	handle, err := c.earlier.HandleOf(name)
	if handle == "" || err != nil {
		return nil, err
	}
	return volumes.ReadRecord[volumeData](stagedData(c.stagingOf(volumeData{Driver: stowagev1alpha1.LocalDriver, Handle: handle})))
}

// findStaged finds the volume that is staged and that a pod sees at a place; nil if none is.
func (c *Caller) findStaged(table mount.Table, at podPlace) (*volumeData, error) {
	seen, mounted := table.At(at.target)
	if !mounted {
		return nil, nil
	}
	for _, point := range table.Below(c.plugins) {
		staging := point.Path
		same := point.Device == seen.Device && point.Root == seen.Root
		if at.device {
			staging = filepath.Dir(point.Path)
			var err error
			if same, err = isDeviceAt(point.Path, at.target); err != nil {
				return nil, err
			}
		}
		if same && filepath.Base(staging) == mounting.GlobalMount {
			return volumes.ReadRecord[volumeData](stagedData(staging))
		}
	}
	return nil, nil
}

// isDeviceAt reports whether a pod's device is the one that is staged at a path.
func isDeviceAt(staged, target string) (bool, error) {
	if number := mounting.NumberAt(staged); number != "" {
		return number == mounting.NumberAt(target), nil
	}
	return local.Place(filepath.Dir(staged)).IsShownAt(target)
}

// unstageEarlier takes away what is left of a volume of the layout before that nothing is
// written down of, unless a pod has it. A loop device isn't taken away while its image is
// about to be staged.
func (c *Caller) unstageEarlier(ctx context.Context, volume string) error {
	handle, err := c.earlier.HandleOf(volume)
	if err != nil {
		return err
	}
	release, err := c.acquire(ctx, volumeData{Driver: stowagev1alpha1.LocalDriver, Handle: handle})
	if err != nil {
		return err
	}
	defer release()
	return c.earlier.Unstage(ctx, volume)
}
