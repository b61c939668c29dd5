package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Folders are the agent's own, with a kubelet's names.
type Folders struct {
	// Pods has the directories of pods, and Plugins what is staged.
	Pods, Plugins string
}

// Device is the target for a device, which is a file: its record lies elsewhere. Each pod has its
// own record: two volume objects that had the same name, one after the other, may be of different
// volumes.
func (f Folders) Device(path string) Target {
	return Target{Path: path, Record: filepath.Join(f.Plugins, DeviceFolder, mounting.HashOf(path)+".json"), IsDevice: true}
}

// Staging returns a volume's staging path.
func (f Folders) Staging(data Data) string {
	if data.Device != "" {
		return filepath.Join(f.Plugins, DeviceFolder, "staging", data.Device)
	}
	return filepath.Join(filepath.Dir(f.Staged(data)), mounting.GlobalMount)
}

// Staged is the file that records that a volume is staged, or about to be.
func (f Folders) Staged(data Data) string {
	return filepath.Join(f.Plugins, data.Driver, mounting.HashOf(data.Handle), dataFile)
}

// AllStaged returns the files that record staged volumes. A folder that can't be read is an error.
func (f Folders) AllStaged() ([]string, error) {
	return Find(f.Plugins, "*", "*", dataFile)
}

// AllOfPods returns the files that record volumes of pods. A folder that can't be read is an error: its volumes
// would count as unused.
func (f Folders) AllOfPods() ([]string, error) {
	directories, err := Find(f.Pods, "*", "volumes", volumes.DirName(mounting.PluginName), "*", dataFile)
	if err != nil {
		return nil, err
	}
	devices, err := Find(f.Plugins, DeviceFolder, "*.json")
	return append(directories, devices...), err
}

// Find finds files by patterns of the names in their path. Unlike filepath.Glob, it ignores no folder that it can't read.
func Find(names ...string) ([]string, error) {
	found, err := doublestar.FilepathGlob(filepath.Join(names...), doublestar.WithFailOnIOErrors())
	if err != nil {
		return nil, fmt.Errorf("looking for what is known of volumes: %w", err)
	}
	return found, nil
}

// Beside is the file that records which volume is staged at a path, which is no device's.
func Beside(staging string) string { return filepath.Join(filepath.Dir(staging), dataFile) }

// DeviceData is the file in which a kubelet looks up the devices of a volume object.
func (f Folders) DeviceData(volume string) string {
	return filepath.Join(f.Plugins, DeviceFolder, volume, "data", dataFile)
}

// EnsureStaging makes a volume's staging path, and records the volume.
func (f Folders) EnsureStaging(data Data) error {
	staging := f.Staging(data)
	err := errors.Join(os.MkdirAll(filepath.Dir(f.Staged(data)), mounting.MountPointMode), os.MkdirAll(filepath.Dir(staging), mounting.MountPointMode))
	if err == nil {
		// MkdirAll would inspect what is mounted there: a server may hang.
		err = os.Mkdir(staging, mounting.MountPointMode)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the directory that the volume is staged at: %w", err)
	}
	wanted := Data{Driver: data.Driver, Handle: data.Handle, Device: data.Device}
	known, err := volumes.ReadRecord[Data](f.Staged(data))
	if err != nil || known == nil || known.Device != wanted.Device {
		err = volumes.WriteRecord(f.Staged(data), wanted)
	}
	if err != nil {
		return fmt.Errorf("recording which volume is staged: %w", err)
	}
	return nil
}

// RemoveStaging removes a volume's staging path, and then its record.
func (f Folders) RemoveStaging(data Data) error {
	if err := volumes.RemoveEmptyDir(f.Staging(data)); err != nil {
		return err
	}
	if err := volumes.RemoveRecord(f.Staged(data)); err != nil {
		return fmt.Errorf("removing the record of a staged volume: %w", err)
	}
	return volumes.RemoveEmptyDir(filepath.Dir(f.Staged(data)))
}
