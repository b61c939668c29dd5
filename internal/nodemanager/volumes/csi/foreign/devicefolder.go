package foreign

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// publishFolder is the folder of devices that pods have, in that of devices.
const publishFolder = "publish"

// ensureDeviceFolder makes the folder of the devices of a volume, one for each pod, and the record in
// which a kubelet looks them up.
func (c *Caller) ensureDeviceFolder(data record.Data, at record.Target) error {
	path := c.Folders.DeviceData(data.Volume)
	err := os.MkdirAll(filepath.Dir(at.Path), mounting.MountPointMode)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), mounting.MountPointMode)
	}
	if err == nil {
		err = volumes.WriteRecord(path, data)
	}
	if err != nil {
		return fmt.Errorf("making the folder of a pod's device: %w", err)
	}
	return nil
}

// removeDeviceFolder removes what ensureDeviceFolder made, unless another pod has the device.
func (c *Caller) removeDeviceFolder(at record.Target) error {
	last, err := removeIfEmpty(filepath.Dir(at.Path))
	if err != nil || !last {
		return err
	}
	path := c.Folders.DeviceData(filepath.Base(at.Link))
	if err := volumes.RemoveRecord(path); err != nil {
		return err
	}
	if err := volumes.RemoveEmptyDir(filepath.Dir(path)); err != nil {
		return err
	}
	return volumes.RemoveEmptyDir(filepath.Dir(filepath.Dir(path)))
}

// removeIfEmpty removes a folder that other pods may use, and reports whether it is gone.
func removeIfEmpty(folder string) (bool, error) {
	err := os.Remove(folder)
	switch entries, listErr := os.ReadDir(folder); {
	case err == nil || errors.Is(err, os.ErrNotExist):
		return true, nil
	case listErr == nil && len(entries) > 0:
		return false, nil
	default:
		return false, err
	}
}
