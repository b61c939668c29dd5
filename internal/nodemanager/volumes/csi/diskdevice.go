package csi

import (
	"context"
	"os"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// publishDevice makes a disk visible as a device at target.
func (d *Disks) publishDevice(ctx context.Context, spec volumes.Spec, target string) error {
	release, err := d.acquire(ctx, spec.Name())
	if err != nil {
		return err
	}
	defer release()
	disk, err := d.open(ctx, spec)
	if err != nil {
		return err
	}
	defer disk.Close()
	place, record := d.at(spec.Name()), recordOf(spec, disk)
	if err := d.note(place, record); err != nil {
		return err
	}
	if err := d.refuseReadOnly(disk, place, record); err != nil {
		return err
	}
	node, err := os.OpenFile(disk.Path(), openOnly, 0)
	if err != nil {
		return err
	}
	defer node.Close()
	// At its place first: that tells which mounts in pods are this disk's.
	if err := volumes.BindFile(d.mounter, node, place.node, mount.ReadWrite); err != nil {
		return err
	}
	access := spec.Access
	if record.ForReaders {
		access = mount.ReadOnly
	}
	if err := volumes.BindFile(d.mounter, node, target, access); err != nil {
		return err
	}
	users, err := d.usersOf(place)
	if err != nil {
		return err
	}
	return protectDisk(disk, record, users)
}

// refuseReadOnly refuses a disk that can't be written and is to be. Once it is shown,
// it may be the agent that protects it.
func (d *Disks) refuseReadOnly(disk *clouddisk.Disk, place diskPlace, record diskRecord) error {
	table, err := d.mounter.Table()
	if err != nil || record.ForReaders || table.IsMountPoint(place.node) {
		return err
	}
	readOnly, err := disk.IsReadOnly()
	if err == nil && readOnly {
		err = errOnlyToRead
	}
	return err
}
