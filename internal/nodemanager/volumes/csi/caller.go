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
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// Caller calls drivers as a kubelet does, on a node without one. It has a volume staged once for
// all pods of the node, published for each, and unstaged when the last pod is gone. It makes one
// call at a time for each volume.
//
// After a restart it reads its state from the pods' directories, the mount table and the drivers'
// records.
type Caller struct {
	mounter mounting.Mounter
	drivers map[string]drivers.Driver
	// pods and plugins are folders of the agent's own, with a kubelet's names.
	pods, plugins string
	owner         ownership.Owner
	locks         keyed.Locks
	earlier       *local.Earlier
}

// CallerOptions are the dependencies of a Caller.
type CallerOptions struct {
	// Mounter mounts, and reads the mount table.
	Mounter mounting.Mounter
	// Root is the agent's own folder. Volumes are staged in it at the same paths as in a
	// kubelet's.
	Root string
	// Drivers are all drivers that the Caller calls.
	Drivers []drivers.Driver
	// Owner applies the fsGroup of pods.
	Owner ownership.Owner
}

// NewCaller returns a Caller.
func NewCaller(options CallerOptions) (*Caller, error) {
	folder := filepath.Join(options.Root, "plugins", mounting.PluginName)
	if err := os.MkdirAll(folder, mounting.MountPointMode); err != nil {
		return nil, fmt.Errorf("making the folder of staged volumes: %w", err)
	}
	// The mount table, with which these are compared, has paths without symlinks.
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

// serves reports whether a volume is of one of the Caller's drivers.
func (c *Caller) serves(volume *corev1.PersistentVolume) bool {
	if volume == nil || volume.Spec.CSI == nil {
		return false
	}
	_, known := c.drivers[volume.Spec.CSI.Driver]
	return known
}

// isRemote reports whether the volumes of a driver are on servers, which may hang.
func (c *Caller) isRemote(driver string) bool {
	of, may := c.drivers[driver].(drivers.Remote)
	return may && of.IsRemote()
}

// queueOf returns the queue of a pod's volume, by its volume object or by what the pod's directory
// records. Volumes on servers have a queue of their own: many that hang hold up no disk.
func (c *Caller) queueOf(spec volumes.Spec, at podTarget) string {
	driver := ""
	if source := spec.PersistentVolume; source != nil && source.Spec.CSI != nil {
		driver = source.Spec.CSI.Driver
	} else if recorded, err := at.recorded(); err == nil && recorded != nil {
		driver = recorded.Driver
	}
	if !c.isRemote(driver) {
		return mounting.PluginName
	}
	// As in the metrics of a kubelet.
	return mounting.PluginName + ":" + driver
}

func (c *Caller) acquire(ctx context.Context, of volumeData) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if release, err = c.locks.Acquire(ctx, of.Driver+"^"+of.Handle); err != nil {
		return nil, errLocked
	}
	return release, nil
}
