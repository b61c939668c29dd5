package csi

import (
	"errors"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// adopter is a driver whose volumes agents of the previous layout mounted elsewhere.
type adopter interface {
	Adopt(stagingOf func(mounting.Adopted) (string, error)) error
}

// adoptAll has all drivers take over what agents of the previous layout mounted. Call it before
// anything is unmounted from one of its pods: that mount may be the last that leads to the
// volume.
func (c *Caller) adoptAll() error {
	var failed []error
	for name := range c.drivers {
		failed = append(failed, c.adopt(name))
	}
	return errors.Join(failed...)
}

// adopt has one driver take over its volumes. Call it before any of them is staged.
func (c *Caller) adopt(driver string) error {
	from, can := c.drivers[driver].(adopter)
	if !can {
		return nil
	}
	return from.Adopt(func(adopted mounting.Adopted) (string, error) {
		data := record.Data{Driver: driver, Handle: adopted.Handle, Volume: adopted.Volume, Lifecycle: record.Persistent}
		if err := c.recordBegun(data); err != nil {
			return "", err
		}
		return c.Staging(data), c.EnsureStaging(data)
	})
}

// recordBegun records the volume for pods that have its directory, but nothing mounted there:
// nothing else would lead to the volume. A mount leads to it by itself.
func (c *Caller) recordBegun(data record.Data) error {
	table, err := c.mounter.Table()
	if err != nil {
		return err
	}
	for folder, targetOf := range map[string]func(string) record.Target{"volumes": record.Dir, record.DeviceFolder: c.Device} {
		paths, err := record.Find(c.Pods, "*", folder, volumes.DirName(mounting.PluginName), data.Volume)
		if err != nil {
			return err
		}
		for _, path := range paths {
			at := targetOf(path)
			recorded, err := at.Read()
			if err == nil && recorded == nil && !table.IsMountPoint(at.Path) {
				err = at.Ensure(data)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
