package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// Caller calls drivers as a kubelet does, on a node without one: a volume is staged once
// for all pods of the node, published for each, and unstaged when the last pod is gone.
// One thing at a time is done to each volume.
//
// What it needs to know after a restart is in the pods' directories, in the mount table and
// in the drivers' records.
type Caller struct {
	mounter mounting.Mounter
	drivers map[string]drivers.Driver
	// pods and plugins are folders of the agent's own, named as a kubelet's.
	pods, plugins string
	owner         ownership.Owner
	turns         volumes.Turns
	earlier       *local.Earlier
}

// CallerOptions are what a Caller is made of.
type CallerOptions struct {
	// Mounter mounts, and reads what is mounted.
	Mounter mounting.Mounter
	// Root is the agent's own folder, in which volumes are staged as in a kubelet's.
	Root string
	// Drivers are those that are served.
	Drivers []drivers.Driver
	// Owner gives volumes to the groups of their pods.
	Owner ownership.Owner
}

// NewCaller returns a Caller.
func NewCaller(options CallerOptions) (*Caller, error) {
	folder := filepath.Join(options.Root, "plugins", mounting.PluginName)
	if err := os.MkdirAll(folder, mounting.MountPointMode); err != nil {
		return nil, fmt.Errorf("making the folder of staged volumes: %w", err)
	}
	// The mount table shows paths without symlinks, and is compared with these.
	resolved, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of staged volumes: %w", err)
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(resolved)))
	caller := &Caller{
		mounter: options.Mounter, drivers: map[string]drivers.Driver{}, pods: filepath.Join(root, "pods"), plugins: resolved,
		owner: options.Owner, earlier: local.NewEarlier(options.Mounter, root),
	}
	for _, driver := range options.Drivers {
		caller.drivers[driver.Name()] = driver
	}
	return caller, caller.earlier.RemoveFolder()
}

// serves says whether a volume is of a driver that is called.
func (c *Caller) serves(volume *corev1.PersistentVolume) bool {
	if volume == nil || volume.Spec.CSI == nil {
		return false
	}
	_, known := c.drivers[volume.Spec.CSI.Driver]
	return known
}

func (c *Caller) acquire(ctx context.Context, of volumeData) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	if release, err = c.turns.Acquire(ctx, of.Driver+"^"+of.Handle); err != nil {
		return nil, errTurn
	}
	return release, nil
}

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
	return c.owner.Give(ctx, spec.Pod, spec.Name(), source)
}

// asCalled is a volume as drivers are told of it: its handle is its name.
func asCalled(spec volumes.Spec) volumes.Spec {
	volume := spec.PersistentVolume.DeepCopy()
	volume.Name = volume.Spec.CSI.VolumeHandle
	spec.PersistentVolume = volume
	return spec
}
