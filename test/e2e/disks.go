package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/test/guests"
)

// base is the folder of each node below which local volumes lie.
const base = "/var/lib/stowage/"

// Disks is what an administrator does on nodes before volumes can lie there.
type Disks struct{}

// Disk is a folder of a node, on a disk of so many bytes; 0: on the node's own.
type Disk struct {
	Path string
	Size int64
}

// Prepare makes a folder that a backend is to be given.
func (Disks) Prepare(disk Disk, _ *guests.Nothing) error {
	if disk.Size > 0 {
		mounted := disk.Path + "-disk"
		if err := os.MkdirAll(mounted, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("disk", mounted, "tmpfs", 0, fmt.Sprintf("size=%d", disk.Size)); err != nil {
			return fmt.Errorf("mounting a disk at %s: %w", mounted, err)
		}
		disk.Path = mounted + "/volumes"
	}
	return os.MkdirAll(disk.Path, 0o755)
}
