package csi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/foreign"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// Caller calls drivers as a kubelet does, on a node without one. It has a volume staged once for
// all pods of the node, published for each, and unstaged when the last pod is gone. It makes one
// call at a time for each volume.
//
// Drivers of other projects, behind sockets, are called by package foreign.
//
// After a restart it reads its state from the pods' directories, the mount table and the drivers'
// records.
type Caller struct {
	mounter mounting.Mounter
	drivers map[string]drivers.Driver
	record.Folders
	owner   ownership.Owner
	locks   keyed.Locks
	earlier *local.Earlier
	// foreign calls the drivers of other projects.
	foreign *foreign.Caller
}

// CallerOptions are the dependencies of a Caller.
type CallerOptions struct {
	// Mounter mounts, and reads the mount table.
	Mounter mounting.Mounter
	// Root is the agent's own folder. Volumes are staged in it at the same paths as in a
	// kubelet's.
	Root string
	// Drivers are the agent's own drivers, and Registered those of other projects; nil: none.
	Drivers    []drivers.Driver
	Registered drivers.Registered
	// Objects reads CSIDriver objects. It is set if Registered is.
	Objects foreign.Objects
	// NodeName is the node, which records of volumes of other projects name.
	NodeName string
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
		mounter: options.Mounter, drivers: map[string]drivers.Driver{}, Folders: record.Folders{Pods: filepath.Join(root, "pods"), Plugins: resolved},
		owner: options.Owner, earlier: local.NewEarlier(options.Mounter, root),
	}
	caller.foreign = foreign.New(foreign.Options{
		Folders: caller.Folders, Registered: options.Registered, Objects: options.Objects, Mounts: options.Mounter, Owner: options.Owner, NodeName: options.NodeName,
	})
	for _, driver := range options.Drivers {
		caller.drivers[driver.Name()] = driver
	}
	return caller, caller.earlier.RemoveFolder()
}

// serves reports whether a volume is of one of the Caller's drivers, or of one of another project. A
// pod waits for a driver that isn't registered.
func (c *Caller) serves(spec volumes.Spec) bool {
	driver := foreign.DriverOf(spec)
	_, known := c.drivers[driver]
	return known && spec.PersistentVolume != nil || foreign.Is(driver)
}

// isRemote reports whether the volumes of a driver are on servers, which may hang.
func (c *Caller) isRemote(driver string) bool {
	of, may := c.drivers[driver].(drivers.Remote)
	return may && of.IsRemote()
}

// queueOf returns the queue of a pod's volume, by its volume object or by what the pod's directory
// records. Volumes on servers have a queue of their own, and so has each driver of another project:
// many that hang hold up no disk.
func (c *Caller) queueOf(spec volumes.Spec, at record.Target) string {
	driver := foreign.DriverAt(spec, at)
	if !c.isRemote(driver) && !foreign.Is(driver) {
		return mounting.PluginName
	}
	// As in the metrics of a kubelet.
	return mounting.PluginName + ":" + driver
}

func (c *Caller) acquire(ctx context.Context, of record.Data) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if release, err = c.locks.Acquire(ctx, of.Driver+"^"+of.Handle); err != nil {
		return nil, errLocked
	}
	return release, nil
}

// Attachable adds to the agent's own disks the volumes of other projects' drivers that must be
// attached to the node first.
func (c *Caller) Attachable(own foreign.Disks) *foreign.Attachable {
	return foreign.NewAttachable(own, c.foreign)
}
