package csi

import (
	"errors"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// adopter is a driver whose volumes agents of the layout before mounted otherwise.
type adopter interface {
	Adopt(stagingOf func(mounting.Adopted) (string, error)) error
}

// adoptAll has all drivers take over what the layout before mounted. It comes before anything
// is taken away from one of its pods: each may be the last that leads to the volume.
func (c *Caller) adoptAll() error {
	var failed []error
	for name := range c.drivers {
		failed = append(failed, c.adopt(name))
	}
	return errors.Join(failed...)
}

// adopt has one driver do so. It comes before any of its volumes is staged.
func (c *Caller) adopt(driver string) error {
	from, can := c.drivers[driver].(adopter)
	if !can {
		return nil
	}
	return from.Adopt(func(adopted mounting.Adopted) (string, error) {
		data := volumeData{Driver: driver, Handle: adopted.Handle, Volume: adopted.Volume, Lifecycle: persistentUse}
		if err := c.noteBegun(data); err != nil {
			return "", err
		}
		return c.stagingOf(data), c.ensureStaging(data)
	})
}

// noteBegun writes down which volume those pods have that have its directory, and nothing is
// mounted there: nothing else would lead to the volume. What is mounted says so by itself.
func (c *Caller) noteBegun(data volumeData) error {
	table, err := c.mounter.Table()
	if err != nil {
		return err
	}
	for folder, placeOf := range map[string]func(string) podPlace{"volumes": dirPlace, deviceFolder: c.devicePlace} {
		paths, err := filepath.Glob(filepath.Join(c.pods, "*", folder, volumes.DirName(mounting.PluginName), data.Volume))
		if err != nil {
			return err
		}
		for _, path := range paths {
			at := placeOf(path)
			noted, err := at.noted()
			if err == nil && noted == nil && !table.IsMountPoint(at.target) {
				err = c.note(data, at)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
