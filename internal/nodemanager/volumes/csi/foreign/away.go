package foreign

import (
	"context"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// Unpublish takes a volume from a pod, and from the node if no other pod has it. The pod's record
// goes last: nothing else leads to the volume when pod, claim and volume object are gone.
func (c *Caller) Unpublish(ctx context.Context, data record.Data, at record.Target) error {
	driver, release, err := c.begin(ctx, data)
	if err != nil {
		return err
	}
	defer release()
	if err := driver.Unpublish(ctx, data.Handle, at.Path); err != nil {
		return err
	}
	if data.Lifecycle != record.Ephemeral {
		if err := c.unstage(ctx, data, at); err != nil {
			return err
		}
	}
	if at.IsDevice {
		if err := c.removeDeviceFolder(at); err != nil {
			return err
		}
	}
	return at.Forget()
}

// UnstageUnused unstages a volume that no pod has. It does nothing while the driver is away.
func (c *Caller) UnstageUnused(ctx context.Context, data record.Data) error {
	if _, err := c.find(data.Driver); err != nil {
		// It may be away for long, and needs no line in the log for each minute.
		return nil
	}
	_, release, err := c.begin(ctx, data)
	if err != nil {
		return err
	}
	defer release()
	return c.unstage(ctx, data, record.Target{})
}

// unstage has a volume unstaged, unless another pod of the node has it than the one that loses it.
// Each pod's record is written before its volume is published, under the lock of the volume.
func (c *Caller) unstage(ctx context.Context, data record.Data, from record.Target) error {
	if used, err := c.isUsedBeside(data, from); err != nil || used {
		return err
	}
	// Under which path it is staged is in the record of that: a pod's may be a kubelet's.
	staged, err := volumes.ReadRecord[record.Data](c.Folders.Staged(data))
	if err != nil {
		return err
	}
	if staged == nil {
		// An unstage that was cut off may have left the folder of the record.
		return c.Folders.RemoveStaging(data)
	}
	driver, err := c.find(data.Driver)
	if err != nil {
		return err
	}
	if err := driver.Unstage(ctx, data.Handle, c.Folders.Staging(*staged)); err != nil {
		return err
	}
	return c.Folders.RemoveStaging(*staged)
}

// isUsedBeside reports whether another pod of the node has a volume. A record that can't be read may
// be of any volume.
func (c *Caller) isUsedBeside(data record.Data, from record.Target) (bool, error) {
	records, err := c.Folders.AllOfPods()
	if err != nil {
		return false, err
	}
	for _, path := range records {
		if path == from.Record {
			continue
		}
		recorded, err := volumes.ReadRecord[record.Data](path)
		if err != nil || recorded != nil && recorded.Is(data) {
			return true, nil //nolint:nilerr // it stays staged until the record can be read
		}
	}
	return false, nil
}
