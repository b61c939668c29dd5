package foreign

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// DeviceTarget is the target for a device. As with a kubelet, the path in the pod's directory is a
// link to it.
func (c *Caller) DeviceTarget(path string) record.Target {
	at := c.Folders.Device(path)
	// pods/<uid>/volumeDevices/<type>/<volume>
	pod := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(path))))
	at.Link, at.Path = path, filepath.Join(c.Folders.Plugins, record.DeviceFolder, publishFolder, filepath.Base(path), pod)
	return at
}

// IsLinked reports whether the path in the pod's directory leads to a target of DeviceTarget.
func IsLinked(at record.Target) bool {
	to, err := os.Readlink(at.Link)
	return err == nil && to == at.Path
}

// PublishDevice makes a device visible for a pod. The link comes first: it leads to whatever a crash
// leaves of the rest.
func (c *Caller) PublishDevice(ctx context.Context, spec volumes.Spec, at record.Target) error {
	if !IsLinked(at) {
		if err := link(at); err != nil {
			return fmt.Errorf("making the pod's link to its device: %w", err)
		}
	}
	return c.Publish(ctx, spec, at)
}

// link makes the link in place of the file that reserves the volume for the pod. There is one of them
// at every moment.
func link(at record.Target) error {
	if err := os.MkdirAll(filepath.Dir(at.Record), mounting.MountPointMode); err != nil {
		return err
	}
	if err := os.Remove(at.Scratch()); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Symlink(at.Path, at.Scratch()); err != nil {
		return err
	}
	return os.Rename(at.Scratch(), at.Link)
}

// UnpublishDevice takes a device from a pod, and the link last. Without a record, nothing but the
// link is left.
func (c *Caller) UnpublishDevice(ctx context.Context, at record.Target) error {
	data, err := at.Read()
	if err == nil && data != nil {
		err = c.Unpublish(ctx, *data, at)
	}
	if err == nil {
		// An unfinished record that a crash left leads nowhere.
		err = at.Forget()
	}
	if err != nil {
		return err
	}
	return os.Remove(at.Link)
}
