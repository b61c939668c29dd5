// Package record has the files by which volumes of type kubernetes.io/csi are found again: which
// volume a pod has, and which one is staged. Names and paths are those of a kubelet. It calls no
// driver, and mounts nothing.
package record

import (
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Names that a kubelet uses, too.
const (
	// DeviceFolder is the folder of devices, beside those of drivers.
	DeviceFolder = "volumeDevices"
	// Persistent and Ephemeral are for volumes with an object, and for a pod's own.
	Persistent = "Persistent"
	Ephemeral  = "Ephemeral"
	dataFile   = "vol_data.json"
)

// MountDir is the folder of a volume's directory on which the volume is mounted.
const MountDir = "mount"

// Data records which volume is in a pod's directory, or staged, as a kubelet writes it: all values
// are texts.
type Data struct {
	Driver string `json:"driverName"`
	Handle string `json:"volumeHandle"`
	// Volume is the name of the volume object, or that of a pod's own volume.
	Volume    string `json:"specVolID,omitempty"`
	Lifecycle string `json:"volumeLifecycleMode,omitempty"`
	// Node and Attachment are written of volumes of other projects' drivers: a kubelet has them.
	Node       string `json:"nodeName,omitempty"`
	Attachment string `json:"attachmentID,omitempty"`
	// Device is set for a block volume of such a driver: it is staged under the name of its volume
	// object.
	Device string `json:"stowage.dev/device,omitempty"`
	// Unfinished is set until such a driver says that it has published the volume, and the volume
	// has its pod's fsGroup. What is mounted before may be half of it.
	Unfinished string `json:"stowage.dev/unfinished,omitempty"`
	// Staged is set if such a driver has something mounted at the staging path: not each has.
	Staged string `json:"stowage.dev/staged,omitempty"`
}

// Is reports whether two records are of one volume. They may differ in the rest.
func (d Data) Is(other Data) bool {
	return d.Driver == other.Driver && d.Handle == other.Handle
}

// Of returns what is recorded of a volume object.
func Of(volume *corev1.PersistentVolume) Data {
	source := volume.Spec.CSI
	return Data{Driver: source.Driver, Handle: source.VolumeHandle, Volume: volume.Name, Lifecycle: Persistent}
}

// Target is where one pod sees a volume, and the file that records which volume it is.
type Target struct {
	Path, Record string
	// IsDevice: the pod sees a device.
	IsDevice bool
	// Link is the path in the pod's directory that leads to Path; "" if that is Path itself.
	Link string
}

// Dir is the target for a volume that the pod sees as a directory.
func Dir(dir string) Target {
	return Target{Path: filepath.Join(dir, MountDir), Record: filepath.Join(dir, dataFile)}
}

// Scratch is a path beside the record, of what isn't finished. It goes with the record, and a crash
// may leave it.
func (t Target) Scratch() string { return t.Record + ".new" }

// Read reads which volume it is; nil if there is no record.
func (t Target) Read() (*Data, error) {
	found, err := volumes.ReadRecord[Data](t.Record)
	if err != nil {
		return nil, fmt.Errorf("reading %s, which records the pod's volume (if it can't be repaired, unmount the volume and remove it by hand): %w", t.Record, err)
	}
	return found, nil
}

// Ensure records which volume a pod has. If another one is recorded, it returns an error.
func (t Target) Ensure(data Data) error {
	recorded, err := t.Read()
	switch {
	case err != nil:
		return err
	case recorded != nil && !recorded.Is(data):
		return ErrOtherOfName(*recorded)
	case recorded != nil:
		return nil
	}
	return t.write(data)
}

// Update is Ensure, and brings the rest of the record up to date.
func (t Target) Update(data Data) error {
	if err := t.Ensure(data); err != nil {
		return err
	}
	recorded, err := t.Read()
	if err != nil || *recorded == data {
		return err
	}
	return t.write(data)
}

func (t Target) write(data Data) error {
	err := os.MkdirAll(filepath.Dir(t.Record), mounting.MountPointMode)
	if err == nil {
		err = volumes.WriteRecord(t.Record, data)
	}
	if err != nil {
		return fmt.Errorf("recording that the pod has volume %s: %w", data.Volume, err)
	}
	return nil
}

// Forget removes the record.
func (t Target) Forget() error {
	if err := volumes.RemoveRecord(t.Record); err != nil {
		return fmt.Errorf("removing the record of a pod's volume: %w", err)
	}
	return nil
}

// ErrOtherOfName is the error for a pod that still has another volume, whose object had the same
// name.
func ErrOtherOfName(recorded Data) error {
	return fmt.Errorf("volume %s of driver %s is mounted for a volume object of the same name: delete the pods of this node that use it: %w",
		recorded.Handle, recorded.Driver, mount.ErrMounted)
}
