package csi

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// isPublished says whether a pod's volume is wholly there. The error is one of the driver's
// Check. What the layout before mounted isn't: publish has the rest made.
func (c *Caller) isPublished(table mount.Table, spec volumes.Spec, at podPlace) (bool, error) {
	if !table.IsMountPoint(at.target) {
		return false, nil
	}
	data := dataOf(spec.PersistentVolume)
	noted, err := at.noted()
	if err != nil || noted == nil || !noted.is(data) {
		return false, err
	}
	if left, err := c.earlier.IsLeft(table, data.Volume, c.stagingOf(data)); err != nil || left {
		return false, err
	}
	for _, path := range []string{c.stagingOf(data), at.target} {
		// It waits for nothing that a context could end.
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

// publish makes a volume visible for a pod. What leads to the volume is written down before
// anything is mounted, so that unpublish finds what a crash left.
func (c *Caller) publish(ctx context.Context, spec volumes.Spec, at podPlace) error {
	data := dataOf(spec.PersistentVolume)
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
	if err := c.note(data, at); err != nil {
		return err
	}
	called := asCalled(spec)
	if err := c.stage(ctx, called, data); err != nil {
		return err
	}
	if err := c.give(ctx, spec, at); err != nil {
		return err
	}
	return c.drivers[data.Driver].Publish(ctx, called, c.stagingOf(data), at.target)
}

// stage has a volume staged, and takes away what the layout before had in its place.
func (c *Caller) stage(ctx context.Context, spec volumes.Spec, data volumeData) error {
	if err := c.ensureStaging(data); err != nil {
		return err
	}
	staging := c.stagingOf(data)
	err := c.drivers[data.Driver].Stage(ctx, spec, staging)
	if errors.Is(err, volumes.ErrOtherVolume) {
		err = fmt.Errorf("%w: delete the pods of this node that use it", err)
	}
	if err != nil {
		return err
	}
	return c.earlier.HandOver(staging)
}

// give gives a volume to the pod's group before the pod sees it: later it would undo what the
// pod itself changed. It is staged by then, which keeps it from being copied meanwhile: a copy
// would have some of its files as they were, under a top that says that all were given.
func (c *Caller) give(ctx context.Context, spec volumes.Spec, at podPlace) error {
	if at.device || !isGiven(spec) {
		return nil
	}
	table, err := c.mounter.Table()
	if err != nil || table.IsMountPoint(at.target) {
		return err
	}
	source, err := os.OpenFile(c.stagingOf(dataOf(spec.PersistentVolume)), mounting.OpenOnly, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	return c.owner.ApplyFSGroup(ctx, spec.Pod, spec.Name(), source)
}

// asCalled is a volume as drivers are told of it: its handle is its name.
func asCalled(spec volumes.Spec) volumes.Spec {
	volume := spec.PersistentVolume.DeepCopy()
	volume.Name = volume.Spec.CSI.VolumeHandle
	spec.PersistentVolume = volume
	return spec
}
