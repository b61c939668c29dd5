package csi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
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
	turns         keyed.Locks
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
