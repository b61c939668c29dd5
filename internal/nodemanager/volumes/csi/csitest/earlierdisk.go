package csitest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// EarlierDisk is a disk that an agent of the previous layout, whose folder is Root, has mounted.
// It has an ext4, unless pods see it as a device.
type EarlierDisk struct {
	// Root is the agent's folder.
	Root string
	// Volume is the name of the volume object, UID its own, and Handle the volume's.
	Volume, Handle string
	UID            types.UID
	// Disk is the open disk.
	Disk *clouddisk.Disk
}

func (e EarlierDisk) path(name string) string {
	return filepath.Join(e.Root, "disks", e.Volume, name)
}

// Record writes which disk it is to a file: to "disk", or to "formatting" with the file system
// that is being made on it.
func (e EarlierDisk) Record(name, fsType string, block bool) error {
	record := map[string]any{
		"driver": stowagev1alpha1.GCEDriver, "handle": e.Handle, "volume": e.UID, "serial": e.Handle, "disk": e.Disk.DiskIdentity,
	}
	if block {
		record["block"] = true
	}
	if fsType != "" {
		record["fsType"] = fsType
	}
	content, err := json.Marshal(record)
	return errors.Join(err, os.MkdirAll(e.path(""), 0o750), os.WriteFile(e.path(name), content, 0o600))
}

// FileSystem mounts the disk for the node, and for a pod, which has it at dir.
func (e EarlierDisk) FileSystem(dir string) error {
	at := e.path("mount")
	if err := errors.Join(e.Record("disk", "", false), os.MkdirAll(at, 0o750)); err != nil {
		return err
	}
	table, err := mount.Kernel{}.Table()
	if err != nil {
		return err
	}
	if !table.IsMountPoint(at) {
		system := mount.FileSystem{Type: "ext4", Source: e.Disk.Path(), Settings: []mount.Setting{{Key: "errors", Value: "remount-ro"}}}
		if err := (mount.Kernel{}).FileSystem(system, at); err != nil {
			return err
		}
	}
	source, err := open(at)
	if err != nil {
		return err
	}
	defer source.Close()
	return volumes.Bind(mount.Kernel{}, source, filepath.Join(dir, "mount"), mount.ReadWrite)
}

// Device mounts the disk's device for the node, and for a pod, which has it at a path.
func (e EarlierDisk) Device(path string) error {
	if err := e.Record("disk", "", true); err != nil {
		return err
	}
	node, err := open(e.Disk.Path())
	if err != nil {
		return err
	}
	defer node.Close()
	return errors.Join(volumes.BindFile(mount.Kernel{}, node, e.path("device"), mount.ReadWrite),
		volumes.BindFile(mount.Kernel{}, node, path, mount.ReadWrite))
}
