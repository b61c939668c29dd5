// Package csitest helps to test the callers of drivers. For tests that upgrade a node with
// running pods, it mounts local volumes as agents of the previous layout did.
package csitest

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Earlier is a local volume that an agent of the previous layout has mounted.
type Earlier struct {
	// Root is the agent's folder.
	Root string
	// Volume is the name of the volume object, and Path the volume's directory.
	Volume, Path string
	// Access is the pod's, and SystemAccess that of the file system.
	Access, SystemAccess mount.Access
}

func (e Earlier) path(name string) string { return filepath.Join(e.Root, "images", e.Volume, name) }

// Directory mounts a directory for a pod, which has it at dir.
func (e Earlier) Directory(dir string) error {
	source, err := open(e.Path)
	if err != nil {
		return err
	}
	defer source.Close()
	return volumes.Bind(mount.Kernel{}, source, filepath.Join(dir, "mount"), e.Access)
}

// FileSystem mounts the ext4 of an image for the node, and for a pod, which has it at dir.
func (e Earlier) FileSystem(ctx context.Context, dir string) error {
	loop, err := e.attach(ctx, loopdev.ForFileSystem)
	if err != nil {
		return err
	}
	defer loop.Close()
	staged := e.path("mount")
	table, err := mount.Kernel{}.Table()
	if err != nil {
		return err
	}
	if !table.IsMountPoint(staged) {
		system := mount.FileSystem{Type: "ext4", Source: loop.Path(), Access: e.SystemAccess, Settings: []mount.Setting{{Key: "errors", Value: "remount-ro"}}}
		if err := errors.Join(os.Mkdir(staged, 0o750), mount.Kernel{}.FileSystem(system, staged)); err != nil {
			return err
		}
	}
	source, err := open(staged)
	if err != nil {
		return err
	}
	defer source.Close()
	return volumes.Bind(mount.Kernel{}, source, filepath.Join(dir, "mount"), e.Access)
}

// Device attaches a loop device to an image, and binds that for a pod at a path.
func (e Earlier) Device(ctx context.Context, path string) error {
	loop, err := e.attach(ctx, loopdev.ForBlock)
	if err != nil {
		return err
	}
	defer loop.Close()
	node, err := open(loop.Path())
	if err != nil {
		return err
	}
	defer node.Close()
	return errors.Join(volumes.BindFile(mount.Kernel{}, node, path, e.Access), loop.SetReadOnly(e.Access == mount.ReadOnly))
}

// attach binds the image, which records which one the volume has, and attaches it to a loop
// device.
func (e Earlier) attach(ctx context.Context, use loopdev.Use) (*loopdev.Loop, error) {
	image, err := open(filepath.Join(e.Path, "image"))
	if err != nil {
		return nil, err
	}
	defer image.Close()
	err = os.MkdirAll(filepath.Dir(e.path("image")), 0o750)
	if err == nil {
		err = volumes.BindFile(mount.Kernel{}, image, e.path("image"), mount.ReadWrite)
	}
	if err != nil {
		return nil, err
	}
	return loopdev.Attach(ctx, image, use)
}

func open(path string) (*os.File, error) { return os.OpenFile(path, unix.O_PATH|unix.O_NOFOLLOW, 0) }
