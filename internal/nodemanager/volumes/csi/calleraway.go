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
)

// unpublish takes a volume away from a pod, and from the node if no other pod has it.
func (c *Caller) unpublish(ctx context.Context, data volumeData, at podPlace) error {
	driver, release, err := c.begin(ctx, data)
	if err != nil {
		return err
	}
	defer release()
	if err := driver.Unpublish(ctx, data.Handle, at.target); err != nil {
		return err
	}
	if err := c.unstage(ctx, data); err != nil {
		return err
	}
	return c.forget(at)
}

// unpublishDevice does the same for a device. The file that it is mounted on is all that
// leads here after a crash, and the driver removes it: so it is unmounted, unstaged, and
// unpublished then.
func (c *Caller) unpublishDevice(ctx context.Context, data volumeData, at podPlace) error {
	driver, release, err := c.begin(ctx, data)
	if err != nil {
		return err
	}
	defer release()
	if err := c.unmountDevice(ctx, data, at.target); err != nil {
		return err
	}
	if err := c.unstage(ctx, data); err != nil {
		return err
	}
	if err := c.forget(at); err != nil {
		return err
	}
	return driver.Unpublish(ctx, data.Handle, at.target)
}

// unmountDevice unmounts a pod's device. One that is in use stays, unless its disk is gone:
// then nothing can be written to it any more.
func (c *Caller) unmountDevice(ctx context.Context, data volumeData, target string) error {
	err := mount.UnmountBelow(c.mounter, target)
	if err == nil || !errors.Is(c.drivers[data.Driver].Check(ctx, data.Handle, target), volumes.ErrGone) {
		return err
	}
	return mount.UnmountBelow(mounting.Detaching{Mounter: c.mounter}, target)
}

func (c *Caller) begin(ctx context.Context, data volumeData) (drivers.Driver, func(), error) {
	driver, served := c.drivers[data.Driver]
	if !served {
		return nil, nil, fmt.Errorf("the pod has volume %s of driver %s, which this agent doesn't serve", data.Handle, data.Driver)
	}
	release, err := c.acquire(ctx, data)
	return driver, release, err
}

// unstage has a volume unstaged, unless another pod of the node has it.
func (c *Caller) unstage(ctx context.Context, data volumeData) error {
	staging := c.stagingOf(data)
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
	return c.removeStaging(data)
}

// canGrow says whether a volume is staged that has a file system, or is a device, and may be
// written.
func (c *Caller) canGrow(table mount.Table, volume *corev1.PersistentVolume) bool {
	if _, grows := c.drivers[volume.Spec.CSI.Driver].(drivers.Grower); !grows {
		return false
	}
	staging := c.stagingOf(dataOf(volume))
	if staged, mounted := table.At(staging); mounted {
		// A directory of a file system isn't one of its own.
		return staged.Access == mount.ReadWrite && staged.Root == "/"
	}
	return len(table.Below(staging)) > 0
}

// grow has a volume made as large as its storage, and returns that size.
func (c *Caller) grow(ctx context.Context, volume *corev1.PersistentVolume) (int64, error) {
	data := dataOf(volume)
	driver, release, err := c.begin(ctx, data)
	if err != nil {
		return 0, err
	}
	defer release()
	grower, grows := driver.(drivers.Grower)
	if !grows {
		return 0, fmt.Errorf("growing volume %s: %w", volume.Name, volumes.ErrNotSupported)
	}
	return grower.Grow(ctx, data.Handle, c.stagingOf(data))
}

// dropOther takes away what a pod has left of another volume whose object had the same name,
// unless it is mounted.
func (c *Caller) dropOther(ctx context.Context, data volumeData, at podPlace) error {
	noted, err := at.noted()
	if err != nil || noted == nil || noted.is(data) {
		return err
	}
	table, err := c.mounter.Table()
	if err != nil {
		return err
	}
	if _, served := c.drivers[noted.Driver]; !served || table.IsMountPoint(at.target) {
		return errOtherOfName(*noted)
	}
	release, err := c.acquire(ctx, *noted)
	if err != nil {
		return err
	}
	defer release()
	if err := c.unstage(ctx, *noted); err != nil {
		return err
	}
	return c.forget(at)
}
