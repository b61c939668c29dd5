// Package foreign mounts volumes of other projects' CSI drivers, for the volume type
// kubernetes.io/csi. It makes the calls that a kubelet makes, in a kubelet's order and with its
// paths, and knows no transport: drivers are drivers.Foreign.
//
// Which volume a pod has is known by its record alone, which is written before the first call. Unlike
// the agent's own drivers, these can't tell which pods of the node use a volume: the records tell it.
// While a driver isn't registered, what its pods have stays as it is.
package foreign

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
	"github.com/stowage-dev/stowage/internal/ownership"
	"github.com/stowage-dev/stowage/internal/volume"
)

// lockPatience is how long a call waits for another one for the same volume.
const lockPatience = time.Minute

// errLocked: another call for the same volume hasn't ended.
var errLocked = errors.New("another mount, unmount or growth of the same volume isn't over")

// Tabler reads the mount table.
type Tabler interface {
	Table() (mount.Table, error)
}

// Objects reads CSIDriver objects.
type Objects interface {
	// CSIDriver returns the object of a driver; nil if there is none.
	CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error)
}

// Options are what a Caller is made of.
type Options struct {
	// Folders have records and staged volumes.
	Folders record.Folders
	// Registered are the drivers.
	Registered drivers.Registered
	// Objects reads CSIDriver objects.
	Objects Objects
	// Mounts reads the mount table.
	Mounts Tabler
	// Owner applies the fsGroup of pods.
	Owner ownership.Owner
	// NodeName is the node, which records name.
	NodeName string
}

// Caller calls the drivers of other projects. It makes one call at a time for each volume.
type Caller struct {
	Options
	locks keyed.Locks
}

// New returns a Caller.
func New(options Options) *Caller { return &Caller{Options: options} }

// Is reports whether a driver is one of another project, behind a socket.
func Is(driver string) bool { return driver != "" && !drivers.IsOwn(driver) }

// DriverOf returns the CSI driver of a volume; "" if it has none.
func DriverOf(spec volumes.Spec) string {
	switch object := spec.PersistentVolume; {
	case object != nil && object.Spec.CSI != nil:
		return object.Spec.CSI.Driver
	case object == nil && spec.Volume.CSI != nil:
		return spec.Volume.CSI.Driver
	default:
		return ""
	}
}

// DriverAt returns the driver of a pod's volume, by its spec or by what the pod's directory records.
func DriverAt(spec volumes.Spec, at record.Target) string {
	if driver := DriverOf(spec); driver != "" {
		return driver
	}
	if recorded, err := at.Read(); err == nil && recorded != nil {
		return recorded.Driver
	}
	return ""
}

// Missing returns why a volume can't be published or unpublished, if its driver isn't registered.
func (c *Caller) Missing(spec volumes.Spec, at record.Target) error {
	driver := DriverAt(spec, at)
	if !Is(driver) {
		return nil
	}
	_, err := c.find(driver)
	return err
}

// find returns a registered driver.
func (c *Caller) find(driver string) (drivers.Foreign, error) {
	if c.Registered == nil {
		return nil, fmt.Errorf("driver %s isn't served by this agent", driver)
	}
	return c.Registered.Find(driver)
}

// begin returns the driver of a volume, and waits for other calls for that.
func (c *Caller) begin(ctx context.Context, data record.Data) (drivers.Foreign, func(), error) {
	driver, err := c.find(data.Driver)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	release, err := c.locks.Acquire(ctx, data.Driver+"^"+data.Handle)
	if err != nil {
		return nil, nil, errLocked
	}
	return driver, release, nil
}

// dataOf returns what is recorded of a volume.
func (c *Caller) dataOf(spec volumes.Spec) record.Data {
	if spec.PersistentVolume == nil {
		// As a kubelet names it: the driver may have it from one.
		sum := sha256.Sum256([]byte(string(spec.Pod.UID) + spec.Volume.Name))
		return record.Data{
			Driver: spec.Volume.CSI.Driver, Handle: fmt.Sprintf("csi-%x", sum), Volume: spec.Volume.Name, Lifecycle: record.Ephemeral, Node: c.NodeName,
		}
	}
	data := record.Of(spec.PersistentVolume)
	data.Node, data.Attachment = c.NodeName, volume.AttachmentName(data.Driver, data.Handle, c.NodeName)
	if spec.IsBlock() {
		data.Device = data.Volume
	}
	return data
}
