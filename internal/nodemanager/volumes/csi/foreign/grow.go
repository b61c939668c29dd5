package foreign

import (
	"context"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// CanGrow reports whether a pod has a volume that it may write, and the driver is there.
func (c *Caller) CanGrow(table mount.Table, volume *corev1.PersistentVolume) bool {
	_, err := c.find(volume.Spec.CSI.Driver)
	if err != nil {
		return false
	}
	_, seen := c.seenAt(table, volume)
	return seen
}

// seenAt returns the path at which a pod has a volume that it may write; false if none has it.
func (c *Caller) seenAt(table mount.Table, volume *corev1.PersistentVolume) (string, bool) {
	spec := volumes.Spec{PersistentVolume: volume}
	if spec.IsBlock() {
		paths, _ := filepath.Glob(filepath.Join(c.Folders.Plugins, record.DeviceFolder, publishFolder, volume.Name, "*"))
		for _, path := range paths {
			if mounting.NumberAt(path) != "" {
				return path, true
			}
		}
		return "", false
	}
	for _, point := range table.Below(c.Folders.Pods) {
		dir := filepath.Dir(point.Path)
		isOf := filepath.Base(point.Path) == record.MountDir && filepath.Base(dir) == volume.Name &&
			filepath.Base(filepath.Dir(dir)) == volumes.DirName(mounting.PluginName)
		if isOf && point.Access == mount.ReadWrite {
			return point.Path, true
		}
	}
	return "", false
}

// Expand has a volume made as large as its object says.
func (c *Caller) Expand(ctx context.Context, object *corev1.PersistentVolume) (int64, error) {
	spec := volumes.Spec{PersistentVolume: object}
	data := c.dataOf(spec)
	driver, release, err := c.begin(ctx, data)
	if err != nil {
		return 0, err
	}
	defer release()
	table, err := c.Mounts.Table()
	if err != nil {
		return 0, err
	}
	target, has := c.seenAt(table, object)
	if !has {
		return 0, fmt.Errorf("growing volume %s: no pod has it any more", object.Name)
	}
	return driver.Expand(ctx, spec, c.Folders.Staging(data), target)
}
