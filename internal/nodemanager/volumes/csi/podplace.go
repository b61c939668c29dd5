package csi

import (
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Names that a kubelet has for the same.
const (
	dataFile      = "vol_data.json"
	deviceFolder  = "volumeDevices"
	persistentUse = "Persistent"
)

// volumeData is which volume a directory of a pod's is of, as a kubelet writes it.
type volumeData struct {
	Driver string `json:"driverName"`
	Handle string `json:"volumeHandle"`
	// Volume is the name of the volume object.
	Volume    string `json:"specVolID,omitempty"`
	Lifecycle string `json:"volumeLifecycleMode,omitempty"`
}

// is reports whether two are of one volume. One that was found out may lack its object's name.
func (d volumeData) is(other volumeData) bool {
	return d.Driver == other.Driver && d.Handle == other.Handle
}

func dataOf(volume *corev1.PersistentVolume) volumeData {
	source := volume.Spec.CSI
	return volumeData{Driver: source.Driver, Handle: source.VolumeHandle, Volume: volume.Name, Lifecycle: persistentUse}
}

// podPlace is where one pod sees a volume, and the file that says which volume it is.
type podPlace struct {
	target, record string
	// device: the pod sees a device.
	device bool
}

// dirPlace is that of a volume that the pod sees as a directory.
func dirPlace(dir string) podPlace {
	return podPlace{target: filepath.Join(dir, mountDir), record: filepath.Join(dir, dataFile)}
}

// noted reads which volume it is; nil if nothing says so.
func (p podPlace) noted() (*volumeData, error) {
	found, err := volumes.ReadRecord[volumeData](p.record)
	if err != nil {
		return nil, fmt.Errorf("reading %s, which says what volume the pod has (if it can't be mended, unmount the volume and remove it by hand): %w", p.record, err)
	}
	return found, nil
}

// devicePlace is that of a device, which is a file: its record lies elsewhere. There is one
// for each pod, as volume objects that had the same name one after the other may be of
// different volumes.
func (c *Caller) devicePlace(path string) podPlace {
	return podPlace{target: path, record: filepath.Join(c.plugins, deviceFolder, mounting.HashOf(path)+".json"), device: true}
}

// stagingOf is where a volume is staged.
func (c *Caller) stagingOf(data volumeData) string {
	return filepath.Join(c.plugins, data.Driver, mounting.HashOf(data.Handle), mounting.GlobalMount)
}

// stagedData is the file beside a staging path that says which volume is staged there.
func stagedData(staging string) string { return filepath.Join(filepath.Dir(staging), dataFile) }

// ensureStaging makes the directory that a volume is staged at.
func (c *Caller) ensureStaging(data volumeData) error {
	staging := c.stagingOf(data)
	if err := os.MkdirAll(staging, mounting.MountPointMode); err != nil {
		return fmt.Errorf("making the directory that the volume is staged at: %w", err)
	}
	known, err := volumes.ReadRecord[volumeData](stagedData(staging))
	if err != nil || known == nil {
		err = volumes.WriteRecord(stagedData(staging), volumeData{Driver: data.Driver, Handle: data.Handle})
	}
	if err != nil {
		return fmt.Errorf("noting which volume is staged: %w", err)
	}
	return nil
}

// removeStaging removes the directory that a volume was staged at.
func (c *Caller) removeStaging(data volumeData) error {
	staging := c.stagingOf(data)
	if err := volumes.RemoveEmptyDir(staging); err != nil {
		return err
	}
	if err := volumes.RemoveRecord(stagedData(staging)); err != nil {
		return fmt.Errorf("noting that the volume isn't staged: %w", err)
	}
	return volumes.RemoveEmptyDir(filepath.Dir(staging))
}

// note writes down which volume a pod has. Another one there is an error.
func (*Caller) note(data volumeData, at podPlace) error {
	noted, err := at.noted()
	switch {
	case err != nil:
		return err
	case noted != nil && !noted.is(data):
		return errOtherOfName(*noted)
	case noted != nil:
		return nil
	}
	err = os.MkdirAll(filepath.Dir(at.record), mounting.MountPointMode)
	if err == nil {
		err = volumes.WriteRecord(at.record, data)
	}
	if err != nil {
		return fmt.Errorf("noting that the pod has volume %s: %w", data.Volume, err)
	}
	return nil
}

// forget removes what note wrote.
func (*Caller) forget(at podPlace) error {
	if err := volumes.RemoveRecord(at.record); err != nil {
		return fmt.Errorf("noting that the pod doesn't have a volume any more: %w", err)
	}
	return nil
}

func errOtherOfName(noted volumeData) error {
	return fmt.Errorf("volume %s of driver %s is mounted for a volume object of the same name: delete the pods of this node that use it: %w",
		noted.Handle, noted.Driver, mount.ErrMounted)
}

// mountDir is the folder of a volume's directory that it is mounted on.
const mountDir = "mount"
