package kubenode

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
)

// folders are what programs expect in /var.
var folders = []string{"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/stowage", "/var/log", "/var/tmp", "/var/cache"}

// mountVar makes a disk the node's /var. One that has a file system keeps it: nodes
// that crashed find what they had.
func mountVar(ctx context.Context, disk string) error {
	source, release, err := blockDevice(ctx, disk)
	if err != nil {
		return err
	}
	mounter := mount.NewSafeFormatAndMount(mount.NewWithoutSystemd(""), exec.New())
	if err := errors.Join(mounter.FormatAndMount(source, "/var", "ext4", nil), release()); err != nil {
		return fmt.Errorf("mounting %s at /var: %w", disk, err)
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

// blockDevice is the disk as a device, which an image becomes until it is mounted nowhere.
// It is released once it is mounted.
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
	loop, err := loopdev.Attach(ctx, image, loopdev.ForFileSystem)
	if err != nil {
		return "", nil, err
	}
	return loop.Path(), loop.Close, nil
}
