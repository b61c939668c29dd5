package foreign

import (
	"context"
	"os"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// yes is what a record has of a fact: a kubelet reads records as texts.
const yes = "true"

// IsPublished reports whether the driver has said that it published a volume, and the volume is
// there, as well as what the driver had mounted at the staging path. It asks no driver: what runs
// isn't touched while the driver is away.
func (c *Caller) IsPublished(table mount.Table, spec volumes.Spec, at record.Target) (bool, error) {
	if !isThere(table, at) {
		return false, nil
	}
	recorded, err := at.Read()
	if err != nil || recorded == nil {
		return false, err
	}
	lost := recorded.Staged != "" && !table.IsMountPoint(c.Folders.Staging(*recorded))
	return recorded.Is(c.dataOf(spec)) && recorded.Unfinished == "" && !lost, nil
}

// isThere reports whether something is at a pod's path. A driver may make a device there, and mount
// nothing.
func isThere(table mount.Table, at record.Target) bool {
	return table.IsMountPoint(at.Path) || at.IsDevice && mounting.NumberAt(at.Path) != ""
}

// Publish makes a volume visible for a pod. It is repeated until it succeeds, also after a crash.
func (c *Caller) Publish(ctx context.Context, spec volumes.Spec, at record.Target) error {
	data := c.dataOf(spec)
	if err := c.dropOther(ctx, data, at); err != nil {
		return err
	}
	driver, release, err := c.begin(ctx, data)
	if err != nil {
		return err
	}
	defer release()
	begun := data
	begun.Unfinished = yes
	if err := at.Update(begun); err != nil {
		return err
	}
	if data.Lifecycle == record.Ephemeral {
		err = driver.PublishEphemeral(ctx, spec, data.Handle, at.Path)
	} else {
		err = c.stageAndPublish(ctx, driver, spec, at)
	}
	if err != nil {
		return err
	}
	if err := c.applyGroup(ctx, driver, spec, at); err != nil {
		return err
	}
	table, err := c.Mounts.Table()
	if err != nil {
		return err
	}
	if data.Lifecycle != record.Ephemeral && table.IsMountPoint(c.Folders.Staging(data)) {
		data.Staged = yes
	}
	return at.Update(data)
}

func (c *Caller) stageAndPublish(ctx context.Context, driver drivers.Foreign, spec volumes.Spec, at record.Target) error {
	data := c.dataOf(spec)
	if at.IsDevice {
		if err := c.ensureDeviceFolder(data, at); err != nil {
			return err
		}
	}
	if err := c.Folders.EnsureStaging(data); err != nil {
		return err
	}
	staging := c.Folders.Staging(data)
	// With the volume's access: the first pod may only read what others write.
	staged := spec
	staged.Access = mount.ReadWrite
	if mounting.IsForReadersOnly(spec.PersistentVolume) {
		staged.Access = mount.ReadOnly
	}
	if err := driver.Stage(ctx, staged, staging); err != nil {
		return err
	}
	return driver.Publish(ctx, spec, staging, at.Path)
}

// applyGroup applies the pod's fsGroup last, through the pod's path: the driver may have no stage.
// Until the record says that all is done, no container sees the volume.
func (c *Caller) applyGroup(ctx context.Context, driver drivers.Foreign, spec volumes.Spec, at record.Target) error {
	needed, err := driver.NeedsGroup(ctx, spec)
	if err != nil || !needed {
		return err
	}
	opened, err := os.OpenFile(at.Path, mounting.OpenOnly, 0)
	if err != nil {
		return err
	}
	defer opened.Close()
	return c.Owner.ApplyFSGroup(ctx, spec.Pod, spec.Name(), opened)
}

// Republish repeats the last call for a volume that its pod has, so that the driver can renew what is
// in it. A failure leaves the volume as it is.
func (c *Caller) Republish(ctx context.Context, spec volumes.Spec, at record.Target) error {
	data := c.dataOf(spec)
	driver, release, err := c.begin(ctx, data)
	if err != nil {
		return err
	}
	defer release()
	if data.Lifecycle == record.Ephemeral {
		return driver.PublishEphemeral(ctx, spec, data.Handle, at.Path)
	}
	return driver.Publish(ctx, spec, c.Folders.Staging(data), at.Path)
}

// dropOther unstages what a pod has left of another volume, whose object had the same name. It
// refuses to while that is mounted, or of the agent's own drivers.
func (c *Caller) dropOther(ctx context.Context, data record.Data, at record.Target) error {
	recorded, err := at.Read()
	if err != nil || recorded == nil || recorded.Is(data) {
		return err
	}
	table, err := c.Mounts.Table()
	if err != nil {
		return err
	}
	if !Is(recorded.Driver) || isThere(table, at) {
		return record.ErrOtherOfName(*recorded)
	}
	return c.Unpublish(ctx, *recorded, at)
}
