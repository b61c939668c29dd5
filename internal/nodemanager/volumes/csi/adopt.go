package csi

import (
	"errors"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
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
		data := volumeData{Driver: driver, Handle: adopted.Handle, Volume: adopted.Volume, Lifecycle: persistentUse}
		if err := c.recordBegun(data); err != nil {
			return "", err
		}
		return c.stagingOf(data), c.ensureStaging(data)
	})
}

// recordBegun records the volume for pods that have its directory, but nothing mounted there:
// nothing else would lead to the volume. A mount leads to it by itself.
func (c *Caller) recordBegun(data volumeData) error {
	table, err := c.mounter.Table()
	if err != nil {
		return err
	}
	for folder, targetOf := range map[string]func(string) podTarget{"volumes": dirTarget, deviceFolder: c.deviceTarget} {
		paths, err := filepath.Glob(filepath.Join(c.pods, "*", folder, volumes.DirName(mounting.PluginName), data.Volume))
		if err != nil {
			return err
		}
		for _, path := range paths {
			at := targetOf(path)
			recorded, err := at.recorded()
			if err == nil && recorded == nil && !table.IsMountPoint(at.target) {
				err = c.record(data, at)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
