package csi

import (
	"errors"
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
	dataFile      = "vol_data.json"
	deviceFolder  = "volumeDevices"
	persistentUse = "Persistent"
)

// volumeData records which volume is in a pod's directory, as a kubelet writes it.
type volumeData struct {
	Driver string `json:"driverName"`
	Handle string `json:"volumeHandle"`
	// Volume is the name of the volume object.
	Volume    string `json:"specVolID,omitempty"`
	Lifecycle string `json:"volumeLifecycleMode,omitempty"`
}

// is reports whether two records are of one volume. They may differ in the rest: findStaged knows
// no object's name.
func (d volumeData) is(other volumeData) bool {
	return d.Driver == other.Driver && d.Handle == other.Handle
}

func dataOf(volume *corev1.PersistentVolume) volumeData {
	source := volume.Spec.CSI
	return volumeData{Driver: source.Driver, Handle: source.VolumeHandle, Volume: volume.Name, Lifecycle: persistentUse}
}

// podTarget is where one pod sees a volume, and the file that records which volume it is.
type podTarget struct {
	target, record string
	// device: the pod sees a device.
	device bool
}

// dirTarget is the target for a volume that the pod sees as a directory.
func dirTarget(dir string) podTarget {
	return podTarget{target: filepath.Join(dir, mountDir), record: filepath.Join(dir, dataFile)}
}

// recorded reads which volume it is; nil if there is no record.
func (p podTarget) recorded() (*volumeData, error) {
	found, err := volumes.ReadRecord[volumeData](p.record)
	if err != nil {
		return nil, fmt.Errorf("reading %s, which records the pod's volume (if it can't be repaired, unmount the volume and remove it by hand): %w", p.record, err)
	}
	return found, nil
}

// deviceTarget is the target for a device, which is a file: its record lies elsewhere. Each pod
// has its own record: two volume objects that had the same name, one after the other, may be of
// different volumes.
func (c *Caller) deviceTarget(path string) podTarget {
	return podTarget{target: path, record: filepath.Join(c.plugins, deviceFolder, mounting.HashOf(path)+".json"), device: true}
}

// stagingOf returns a volume's staging path.
func (c *Caller) stagingOf(data volumeData) string {
	return filepath.Join(c.plugins, data.Driver, mounting.HashOf(data.Handle), mounting.GlobalMount)
}

// stagedData is the file beside a staging path that records which volume is staged there.
func stagedData(staging string) string { return filepath.Join(filepath.Dir(staging), dataFile) }

// ensureStaging makes a volume's staging path, and records the volume beside it.
func (c *Caller) ensureStaging(data volumeData) error {
	staging := c.stagingOf(data)
	err := os.MkdirAll(filepath.Dir(staging), mounting.MountPointMode)
	if err == nil {
		// MkdirAll would inspect what is mounted there: a server may hang.
		err = os.Mkdir(staging, mounting.MountPointMode)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the directory that the volume is staged at: %w", err)
	}
	known, err := volumes.ReadRecord[volumeData](stagedData(staging))
	if err != nil || known == nil {
		err = volumes.WriteRecord(stagedData(staging), volumeData{Driver: data.Driver, Handle: data.Handle})
	}
	if err != nil {
		return fmt.Errorf("recording which volume is staged: %w", err)
	}
	return nil
}

// removeStaging removes a volume's staging path and its record.
func (c *Caller) removeStaging(data volumeData) error {
	staging := c.stagingOf(data)
	if err := volumes.RemoveEmptyDir(staging); err != nil {
		return err
	}
	if err := volumes.RemoveRecord(stagedData(staging)); err != nil {
		return fmt.Errorf("removing the record of a staged volume: %w", err)
	}
	return volumes.RemoveEmptyDir(filepath.Dir(staging))
}

// record records which volume a pod has. If another one is recorded, it returns an error.
func (*Caller) record(data volumeData, at podTarget) error {
	recorded, err := at.recorded()
	switch {
	case err != nil:
		return err
	case recorded != nil && !recorded.is(data):
		return errOtherOfName(*recorded)
	case recorded != nil:
		return nil
	}
	err = os.MkdirAll(filepath.Dir(at.record), mounting.MountPointMode)
	if err == nil {
		err = volumes.WriteRecord(at.record, data)
	}
	if err != nil {
		return fmt.Errorf("recording that the pod has volume %s: %w", data.Volume, err)
	}
	return nil
}

// forget removes what record wrote.
func (*Caller) forget(at podTarget) error {
	if err := volumes.RemoveRecord(at.record); err != nil {
		return fmt.Errorf("removing the record of a pod's volume: %w", err)
	}
	return nil
}

func errOtherOfName(recorded volumeData) error {
	return fmt.Errorf("volume %s of driver %s is mounted for a volume object of the same name: delete the pods of this node that use it: %w",
		recorded.Handle, recorded.Driver, mount.ErrMounted)
}

// mountDir is the folder of a volume's directory on which the volume is mounted.
const mountDir = "mount"
