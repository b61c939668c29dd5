package csi

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// isPublished reports whether a pod's volume is wholly there. An error is that of the driver's
// Check. What the previous layout mounted isn't wholly there: publish makes the rest.
func (c *Caller) isPublished(table mount.Table, spec volumes.Spec, at record.Target) (bool, error) {
	if !table.IsMountPoint(at.Path) {
		return false, nil
	}
	data := record.Of(spec.PersistentVolume)
	recorded, err := at.Read()
	if err != nil || recorded == nil || !recorded.Is(data) {
		return false, err
	}
	if left, err := c.earlier.IsLeft(table, data.Volume, c.Staging(data)); err != nil || left {
		return false, err
	}
	for _, path := range []string{c.Staging(data), at.Path} {
		// Check waits for nothing that a context could cancel.
		err = c.drivers[data.Driver].Check(context.Background(), data.Handle, path)
		if errors.Is(err, volumes.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// publish makes a volume visible for a pod. It records which volume that is before it mounts
// anything, so that unpublish finds what a crash left.
func (c *Caller) publish(ctx context.Context, spec volumes.Spec, at record.Target) error {
	data := record.Of(spec.PersistentVolume)
	if err := c.adopt(data.Driver); err != nil {
		return err
	}
	if err := c.dropOther(ctx, data, at); err != nil {
		return err
	}
	release, err := c.acquire(ctx, data)
	if err != nil {
		return err
	}
	defer release()
	if err := at.Ensure(data); err != nil {
		return err
	}
	called := asCalled(spec)
	if err := c.stage(ctx, forAllPods(called), data); err != nil {
		return err
	}
	if err := c.applyFSGroup(ctx, spec, at); err != nil {
		return err
	}
	return c.drivers[data.Driver].Publish(ctx, called, c.Staging(data), at.Path)
}

// stage has a volume staged, and removes what the previous layout had for it.
func (c *Caller) stage(ctx context.Context, spec volumes.Spec, data record.Data) error {
	if err := c.EnsureStaging(data); err != nil {
		return err
	}
	staging := c.Staging(data)
	err := c.drivers[data.Driver].Stage(ctx, spec, staging)
	if errors.Is(err, volumes.ErrOtherVolume) {
		err = fmt.Errorf("%w: delete the pods of this node that use it", err)
	}
	if err != nil {
		return err
	}
	return c.earlier.HandOver(staging)
}

// applyFSGroup applies the pod's fsGroup before the pod sees the volume: later it would undo what
// the pod itself changed. It comes after staging, which keeps a copy from starting. Such a copy
// would contain files without the group, below a top directory that says that all have it.
func (c *Caller) applyFSGroup(ctx context.Context, spec volumes.Spec, at record.Target) error {
	if at.IsDevice || !needsFSGroup(spec) || c.isRemote(spec.PersistentVolume.Spec.CSI.Driver) {
		return nil
	}
	table, err := c.mounter.Table()
	if err != nil || table.IsMountPoint(at.Path) {
		return err
	}
	source, err := os.OpenFile(c.Staging(record.Of(spec.PersistentVolume)), mounting.OpenOnly, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	return c.owner.ApplyFSGroup(ctx, spec.Pod, spec.Name(), source)
}

// forAllPods returns the spec with the volume's access: the first pod that has a volume staged may
// only read what others write.
func forAllPods(spec volumes.Spec) volumes.Spec {
	spec.Access = mount.ReadWrite
	if mounting.IsForReadersOnly(spec.PersistentVolume) {
		spec.Access = mount.ReadOnly
	}
	return spec
}

// asCalled returns the spec for a driver: the handle is the volume's name.
func asCalled(spec volumes.Spec) volumes.Spec {
	volume := spec.PersistentVolume.DeepCopy()
	volume.Name = volume.Spec.CSI.VolumeHandle
	spec.PersistentVolume = volume
	return spec
}
