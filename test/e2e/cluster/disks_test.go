package cluster_test

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/test/harness/guest"
)

// Disks is what an administrator does on nodes before volumes can lie there.
type Disks struct{}

// Disk is one of so many bytes, and where a node is to have it.
type Disk struct {
	Path string
	Size int64
}

// Mount mounts one.
func (Disks) Mount(disk Disk, _ *guest.Nothing) error {
	if err := os.MkdirAll(disk.Path, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("disk", disk.Path, "tmpfs", 0, fmt.Sprintf("size=%d", disk.Size)); err != nil {
		return fmt.Errorf("mounting a disk at %s: %w", disk.Path, err)
	}
	return nil
}
