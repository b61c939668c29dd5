package csi

import (
	"context"
	"path/filepath"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// dataAt returns which volume a pod has at a path, whose volume object has the given name; nil if
// nothing leads to one. The previous layout may have mounted it, and another pod staged it since.
// Then dataAt finds and records it: after the unmount nothing would lead to it.
func (c *Caller) dataAt(at record.Target, name string) (*record.Data, error) {
	recorded, err := at.Read()
	if recorded != nil || err != nil {
		return recorded, err
	}
	if err := c.adoptAll(); err != nil {
		return nil, err
	}
	if recorded, err = at.Read(); recorded != nil || err != nil {
		return recorded, err
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
	found.Volume, found.Lifecycle = name, record.Persistent
	return found, at.Ensure(*found)
}

// findBegun finds the volume that an agent of the previous layout recorded, if a pod began to
// stage it and is gone; else nil.
func (c *Caller) findBegun(name string) (*record.Data, error) {
	handle, err := c.earlier.HandleOf(name)
	if handle == "" || err != nil {
		return nil, err
	}
	return volumes.ReadRecord[record.Data](record.Beside(c.Staging(record.Data{Driver: stowagev1alpha1.LocalDriver, Handle: handle})))
}

// findStaged finds the staged volume that a pod has mounted; nil if there is none.
func (c *Caller) findStaged(table mount.Table, at record.Target) (*record.Data, error) {
	seen, mounted := table.At(at.Path)
	if !mounted {
		return nil, nil
	}
	for _, point := range table.Below(c.Plugins) {
		staging := point.Path
		// Mounts of one server may share their device.
		same := point.Device == seen.Device && point.Root == seen.Root && (point.Address == "" || point.Source == seen.Source)
		if at.IsDevice {
			staging = filepath.Dir(point.Path)
			var err error
			if same, err = isDeviceAt(point.Path, at.Path); err != nil {
				return nil, err
			}
		}
		if same && filepath.Base(staging) == mounting.GlobalMount {
			return volumes.ReadRecord[record.Data](record.Beside(staging))
		}
	}
	return nil, nil
}

// isDeviceAt reports whether a pod's device is the one that is staged at a path.
func isDeviceAt(staged, target string) (bool, error) {
	if number := mounting.NumberAt(staged); number != "" {
		return number == mounting.NumberAt(target), nil
	}
	return local.ImageFolder(filepath.Dir(staged)).IsShownAt(target)
}

// unstageEarlier removes what is left of a volume of the previous layout that has no record,
// unless a pod has it. It holds the volume's lock, so that no loop device is detached while its
// image is being staged.
func (c *Caller) unstageEarlier(ctx context.Context, volume string) error {
	handle, err := c.earlier.HandleOf(volume)
	if err != nil {
		return err
	}
	release, err := c.acquire(ctx, record.Data{Driver: stowagev1alpha1.LocalDriver, Handle: handle})
	if err != nil {
		return err
	}
	defer release()
	return c.earlier.Unstage(ctx, volume)
}
