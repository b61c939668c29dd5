package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// earlierDir is the folder in which agents of the previous layout had images for all pods
	// of the node.
	earlierDir = "images"
	// EarlierFSGroup is the folder of a volume's directory in which they had the volume
	// mounted while they applied the pod's fsGroup.
	EarlierFSGroup = "given"
)

// Earlier finds what agents of the previous layout left of images, which pods may still use. In
// <folder>/<volume>, image is a mount of the image, which says which one it is, and mount is one
// of its file system. Nothing adds to it. It goes when the volume is staged, or when its last pod
// goes.
type Earlier struct {
	images *images
	folder string
}

// NewEarlier returns an Earlier for the agent's folder root.
func NewEarlier(mounter mount.Mounter, root string) *Earlier {
	return &Earlier{images: &images{mounter: mounter}, folder: filepath.Join(root, earlierDir)}
}

// RemoveFolder removes the folder once it is empty.
func (e *Earlier) RemoveFolder() error {
	if err := unix.Rmdir(e.folder); err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "removing the folder of an earlier version", Path: e.folder, Err: err}
	}
	return nil
}

func (e *Earlier) at(volume string) ImageFolder { return ImageFolder(filepath.Join(e.folder, volume)) }

// folders lists what is left.
func (e *Earlier) folders() ([]ImageFolder, error) {
	entries, err := os.ReadDir(e.folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listing what agents of an earlier version left: %w", err)
	}
	folders := make([]ImageFolder, 0, len(entries))
	for _, entry := range entries {
		folders = append(folders, e.at(entry.Name()))
	}
	return folders, nil
}

// HandleOf returns the handle that the previous layout recorded for a volume object: the last
// folder of the image's path; "" if there is none.
func (e *Earlier) HandleOf(volume string) (string, error) {
	table, err := e.images.mounter.Table()
	if err != nil {
		return "", err
	}
	image, mounted := table.At(e.at(volume).image())
	if !mounted {
		return "", nil
	}
	return filepath.Base(filepath.Dir(image.Root)), nil
}

// HandOver removes what is left of the image that is staged at a path. Pods keep their mounts,
// which show the same data.
func (e *Earlier) HandOver(staging string) error {
	folders, err := e.folders()
	if err != nil {
		return err
	}
	for _, each := range folders {
		if err := e.handOverOne(each, staging); err != nil {
			return err
		}
	}
	return nil
}

func (e *Earlier) handOverOne(at ImageFolder, staging string) error {
	table, err := e.images.mounter.Table()
	if err != nil {
		return err
	}
	needless, err := at.isNeedless(table, staging)
	if err != nil || !needless {
		return err
	}
	return e.remove(at)
}

// IsLeft reports whether a volume that is staged at a path has a folder of the previous layout
// that HandOver would remove.
func (e *Earlier) IsLeft(table mount.Table, volume, staging string) (bool, error) {
	at := e.at(volume)
	if there, err := volumes.IsThere(string(at)); err != nil || !there {
		return false, err
	}
	return at.isNeedless(table, staging)
}

// isNeedless reports whether a folder can go: its image is staged at a path, or nothing is
// mounted in the folder.
func (p ImageFolder) isNeedless(table mount.Table, staging string) (bool, error) {
	if len(table.Below(string(p))) == 0 {
		return true, nil
	}
	if own, mounted := table.At(p.mount()); mounted {
		staged, _ := table.At(staging)
		return staged.Device == own.Device, nil
	}
	return p.isStagedAt(table, staging)
}

// isStagedAt reports whether the image that is bound in a folder is staged at a path.
func (p ImageFolder) isStagedAt(table mount.Table, staging string) (bool, error) {
	image, err := p.open()
	if image == nil || err != nil {
		return false, err
	}
	defer image.Close()
	if table.IsMountPoint(ImageFolder(staging).image()) {
		return isSameFile(image, ImageFolder(staging).image())
	}
	staged, mounted := table.At(staging)
	if !mounted {
		return false, nil
	}
	loop, err := loopdev.LoopAt(staged.Device)
	if loop == nil || err != nil {
		return false, err
	}
	defer loop.Close()
	return loopdev.IsBackedBy(loop.Path(), image)
}

func isSameFile(file *os.File, path string) (bool, error) {
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(info, there), err
}

// Unstage removes what is left of a volume, unless a pod of the node has it.
func (e *Earlier) Unstage(ctx context.Context, volume string) error {
	if volume == "" {
		return nil
	}
	at := e.at(volume)
	if _, err := os.Lstat(string(at)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	loop, err := find(at)
	if err != nil {
		return err
	}
	if loop != nil {
		defer loop.Close()
		users, err := e.images.usersOf(at.mount(), loop)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			return protect(loop, users)
		}
	}
	if err := mount.UnmountBelow(e.images.mounter, at.mount()); err != nil {
		return err
	}
	if err := detach(ctx, loop); err != nil {
		return err
	}
	return e.remove(at)
}

// remove removes a folder. The bound image goes last: it leads to the rest.
func (e *Earlier) remove(at ImageFolder) error {
	mounter := e.images.mounter
	if err := mount.UnmountBelow(mounter, at.mount()); err != nil {
		return err
	}
	if err := volumes.RemoveEmptyDir(at.mount()); err != nil {
		return err
	}
	if err := volumes.UnbindFile(mounter, at.image()); err != nil {
		return err
	}
	if err := volumes.RemoveEmptyDir(string(at)); err != nil {
		return err
	}
	return e.RemoveFolder()
}

// IsShownAt reports whether the file at a path is a loop device of the image that is bound here.
// It opens no other device: that may be gone.
func (p ImageFolder) IsShownAt(target string) (bool, error) {
	var stat unix.Stat_t
	if err := unix.Stat(target, &stat); err != nil {
		return false, &os.PathError{Op: "looking at", Path: target, Err: err}
	}
	const loopMajor = 7
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK || unix.Major(stat.Rdev) != loopMajor || filepath.Base(string(p)) != mounting.GlobalMount {
		return false, nil
	}
	err := p.checkDevice(target)
	if errors.Is(err, errLoopDetached) {
		return false, nil
	}
	return err == nil, err
}
