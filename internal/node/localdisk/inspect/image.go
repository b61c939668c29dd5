package inspect

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"
)

// checkImage inspects an image: the file system in it while that is mounted, or the blocks of the
// file for a block device.
func (r *Report) checkImage(dir *os.File, volume layout.Volume, at *Snapshot) error {
	image, err := safepath.OpenFileAt(dir, stowagev1alpha1.ImageFile)
	if err != nil {
		return err
	}
	defer image.Close()
	if volume.Image.FSType == "" {
		var stat unix.Stat_t
		if err := unix.Fstat(int(image.Fd()), &stat); err != nil {
			return fmt.Errorf("reading the size of %s: %w", image.Name(), err)
		}
		r.Usage = &usage.Usage{Bytes: stat.Blocks * device.SectorBytes, Size: stat.Size}
		return nil
	}
	loop, err := at.attached.Find(image)
	if loop == nil || errors.Is(err, device.ErrForeign) {
		return nil
	}
	if err != nil {
		return err
	}
	// While it is open, the kernel gives the loop device to no other image.
	defer loop.Close()
	for _, point := range at.table.Shows(loop.Device(), "/") {
		if top, found := at.table.At(point.Path); found && top.ID == point.ID {
			return r.checkMount(point, loop)
		}
	}
	return nil
}

// checkMount inspects a file system in an image, where it is mounted.
func (r *Report) checkMount(point mount.Point, loop *loopdev.Loop) error {
	dir, err := os.OpenFile(point.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // It was unmounted after the mount table was read.
	}
	if err != nil {
		return fmt.Errorf("inspecting the file system of the volume: %w", err)
	}
	defer dir.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return fmt.Errorf("inspecting the file system of the volume: %w", err)
	}
	if fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev)) != loop.Device() {
		return nil // Another file system is mounted there by now.
	}
	if filesystem.HasStopped(point) {
		r.add(stowagev1alpha1.ReasonFileSystemReadOnly, "the kernel stopped writing to the file system in the image, after an error: "+
			"save what it holds, delete the pods that use it, and let them start again, which checks it")
	}
	if filesystem.HasErrors(loop.Device()) {
		r.add(stowagev1alpha1.ReasonIOError, "the kernel found errors in the file system of the image: look at the node's kernel log, "+
			"delete the pods that use it, and let them start again, which checks it")
	}
	if err := checkReads(dir); err != nil {
		return err
	}
	return r.measureMount(dir)
}

// measureMount reads the usage of a file system.
func (r *Report) measureMount(dir *os.File) error {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &stat); err != nil {
		return fmt.Errorf("reading how full the volume is: %w", err)
	}
	r.Usage = &usage.Usage{
		Bytes:  int64(stat.Blocks-stat.Bfree) * stat.Frsize,
		Size:   int64(stat.Blocks-stat.Bfree+stat.Bavail) * stat.Frsize,
		Inodes: new(int64(stat.Files - stat.Ffree)),
	}
	r.mostInodes = int64(stat.Files)
	return nil
}
