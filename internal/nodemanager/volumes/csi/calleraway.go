package csi

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// unpublish unmounts a volume from a pod, and from the node if no other pod has it.
func (c *Caller) unpublish(ctx context.Context, data record.Data, at record.Target) error {
	driver, release, err := c.begin(ctx, data)
	if err != nil {
		return err
	}
	defer release()
	if err := driver.Unpublish(ctx, data.Handle, at.Path); err != nil {
		return err
	}
	if err := c.unstage(ctx, data); err != nil {
		return err
	}
	return at.Forget()
}

// unpublishDevice does the same for a device. After a crash, only the file on which it is mounted
// leads here, and the driver's Unpublish removes that file. So the order is unmount, unstage,
// Unpublish.
func (c *Caller) unpublishDevice(ctx context.Context, data record.Data, at record.Target) error {
	driver, release, err := c.begin(ctx, data)
	if err != nil {
		return err
	}
	defer release()
	if err := c.unmountDevice(ctx, data, at.Path); err != nil {
		return err
	}
	if err := c.unstage(ctx, data); err != nil {
		return err
	}
	if err := at.Forget(); err != nil {
		return err
	}
	return driver.Unpublish(ctx, data.Handle, at.Path)
}

// unmountDevice unmounts a pod's device. A device in use stays, unless its disk is gone: then
// nothing can be written to it any more.
func (c *Caller) unmountDevice(ctx context.Context, data record.Data, target string) error {
	err := mount.UnmountBelow(c.mounter, target)
	if err == nil || !errors.Is(c.drivers[data.Driver].Check(ctx, data.Handle, target), volumes.ErrGone) {
		return err
	}
	return mount.UnmountBelow(mounting.Detaching{Mounter: c.mounter}, target)
}

// unbindRemote unmounts from a pod what is on a server and has no record: it was lost. The driver
// does so in bounded time.
func (c *Caller) unbindRemote(ctx context.Context, target string) error {
	table, err := c.mounter.Table()
	if err != nil {
		return err
	}
	seen, mounted := table.At(target)
	if !mounted || seen.Address == "" {
		return nil
	}
	for name, driver := range c.drivers {
		if c.isRemote(name) {
			return driver.Unpublish(ctx, "", target)
		}
	}
	return nil
}

func (c *Caller) begin(ctx context.Context, data record.Data) (drivers.Driver, func(), error) {
	driver, served := c.drivers[data.Driver]
	if !served {
		return nil, nil, fmt.Errorf("the pod has volume %s of driver %s, which this agent doesn't serve", data.Handle, data.Driver)
	}
	release, err := c.acquire(ctx, data)
	return driver, release, err
}

// unstage has a volume unstaged, unless another pod of the node has it.
func (c *Caller) unstage(ctx context.Context, data record.Data) error {
	staging := c.Staging(data)
	if err := c.earlier.HandOver(staging); err != nil {
		return err
	}
	handle, err := c.earlier.HandleOf(data.Volume)
	if err == nil && (handle == "" || handle == data.Handle) {
		err = c.earlier.Unstage(ctx, data.Volume)
	}
	if err != nil {
		return err
	}
	err = c.drivers[data.Driver].Unstage(ctx, data.Handle, staging)
	if errors.Is(err, volumes.ErrInUse) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.RemoveStaging(data)
}

// canGrow reports whether a volume is staged, may be written, and is a device or has a file
// system of its own.
func (c *Caller) canGrow(table mount.Table, volume *corev1.PersistentVolume) bool {
	if _, grows := c.drivers[volume.Spec.CSI.Driver].(drivers.Grower); !grows {
		return false
	}
	staging := c.Staging(record.Of(volume))
	if staged, mounted := table.At(staging); mounted {
		// A directory has no file system of its own: its root isn't the file system's.
		return staged.Access == mount.ReadWrite && staged.Root == "/"
	}
	return len(table.Below(staging)) > 0
}

// grow has a volume made as large as its storage, and returns that size.
func (c *Caller) grow(ctx context.Context, volume *corev1.PersistentVolume) (int64, error) {
	data := record.Of(volume)
	driver, release, err := c.begin(ctx, data)
	if err != nil {
		return 0, err
	}
	defer release()
	grower, grows := driver.(drivers.Grower)
	if !grows {
		return 0, fmt.Errorf("growing volume %s: %w", volume.Name, volumes.ErrNotSupported)
	}
	return grower.Grow(ctx, data.Handle, c.Staging(data))
}

// dropOther unstages what a pod has left of another volume, whose object had the same name. It
// refuses to while that is mounted.
func (c *Caller) dropOther(ctx context.Context, data record.Data, at record.Target) error {
	recorded, err := at.Read()
	if err != nil || recorded == nil || recorded.Is(data) {
		return err
	}
	table, err := c.mounter.Table()
	if err != nil {
		return err
	}
	if _, served := c.drivers[recorded.Driver]; !served || table.IsMountPoint(at.Path) {
		return record.ErrOtherOfName(*recorded)
	}
	release, err := c.acquire(ctx, *recorded)
	if err != nil {
		return err
	}
	defer release()
	if err := c.unstage(ctx, *recorded); err != nil {
		return err
	}
	return at.Forget()
}
