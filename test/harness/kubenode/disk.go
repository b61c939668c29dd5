package kubenode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

// extMagic is what a file system of the ext family has at extMagicAt.
var extMagic = []byte{0x53, 0xef}

const extMagicAt = 1024 + 56

// folders are what programs expect in /var.
var folders = []string{"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/stowage", "/var/log", "/var/tmp", "/var/cache"}

// mountVar makes a disk the node's /var. One that has a file system keeps it: nodes
// that crashed find what they had.
func mountVar(ctx context.Context, disk string) error {
	if err := format(ctx, disk); err != nil {
		return err
	}
	source, release, err := blockDevice(ctx, disk)
	if err != nil {
		return err
	}
	if err := unix.Mount(source, "/var", "ext4", 0, ""); err != nil {
		return errors.Join(fmt.Errorf("mounting %s at /var: %w", disk, err), release())
	}
	if err := release(); err != nil {
		return err
	}
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{"/var/run": "/run", "/var/lock": "/run/lock"} {
		if err := os.Symlink(target, link); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// format formats a disk that has no file system.
func format(ctx context.Context, disk string) error {
	file, err := os.Open(disk)
	if err != nil {
		return fmt.Errorf("looking at the node's disk: %w", err)
	}
	defer file.Close()
	found := make([]byte, len(extMagic))
	if _, err := file.ReadAt(found, extMagicAt); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("looking at the node's disk: %w", err)
	}
	if bytes.Equal(found, extMagic) {
		return nil
	}
	return guest.Commands(ctx, "mkfs.ext4 -q -F "+disk)
}

// blockDevice is the disk as a device, which an image becomes until nobody has it
// mounted. It is released once it is mounted.
func blockDevice(ctx context.Context, disk string) (path string, release func() error, err error) {
	info, err := os.Stat(disk)
	if err != nil {
		return "", nil, err
	}
	if !info.Mode().IsRegular() {
		return disk, func() error { return nil }, nil
	}
	image, err := os.OpenFile(disk, os.O_RDWR, 0)
	if err != nil {
		return "", nil, err
	}
	defer image.Close()
	loop, err := device.Attach(ctx, image, device.ForFileSystem)
	if err != nil {
		return "", nil, err
	}
	return loop.Path(), loop.Close, nil
}
