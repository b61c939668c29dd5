package leftovers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/holder"
	"github.com/stowage-dev/stowage/test/harness/owned"
)

// loop is a loop device: its path, its number, its file, and two paths of that. One is as the kernel
// knows it, without its mark of what is deleted: it is short once the file system is mounted
// nowhere. The other is as it was attached, of which the kernel keeps the beginning.
type loop struct {
	path           string
	number         uint64
	shows          inode
	file, attached string
}

// inode is a file: the device of its file system, and its number there.
type inode struct{ device, number uint64 }

func (l loop) isIn(folder string) bool { return within(l.file, folder) || within(l.attached, folder) }

// at is the device's major:minor.
func (l loop) at() string { return fmt.Sprintf("%d:%d", unix.Major(l.number), unix.Minor(l.number)) }

func loopDevices(folder string) (things []thing, err error) {
	loops, err := loopsOf(folder)
	for _, loop := range loops {
		file := loop.file
		if len(loop.attached) > len(file) {
			file = loop.attached
		}
		name := fmt.Sprintf("loop device %s of %s", loop.path, file)
		things = append(things, thing{name: name, held: holder.Thing{Device: loop.at()}})
	}
	return things, err
}

// loopsOf finds devices by the paths of their files, and by what is in the folder now.
func loopsOf(folder string) ([]loop, error) {
	files, err := inodes(folder)
	if err != nil {
		return nil, err
	}
	all, err := allLoops()
	return standingOn(all, func(l loop) bool { return l.isIn(folder) || slices.Contains(files, l.shows) }), err
}

// standingOn are the devices of some files, and those of files on them, each device before
// those that stand on it.
func standingOn(all []loop, isOurs func(loop) bool) (ours []loop) {
	for known := -1; known < len(ours); {
		known = len(ours)
		for _, l := range all {
			stands := slices.ContainsFunc(ours, func(other loop) bool { return other.number == l.shows.device })
			if (stands || isOurs(l)) && !slices.Contains(ours, l) {
				ours = append(ours, l)
			}
		}
	}
	return ours
}

// inodes are the regular files of a folder. What is mounted in it may be others'.
func inodes(folder string) (files []inode, err error) {
	points, err := mounts(folder)
	if err != nil {
		return nil, err
	}
	paths, err := walk(folder, 0)
	for _, path := range paths {
		isMounted := slices.ContainsFunc(points, func(point thing) bool { return within(path, point.held.Path) })
		var stat unix.Stat_t
		if !isMounted && unix.Lstat(path, &stat) == nil { // else it is gone already
			files = append(files, inode{stat.Dev, stat.Ino})
		}
	}
	return files, err
}

func allLoops() (loops []loop, err error) {
	entries, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, entry := range entries {
		found, failure := lookAt(entry)
		if failure == nil {
			loops = append(loops, found)
		} else if !isGone(failure) {
			err = errors.Join(err, fmt.Errorf("looking at %s: %w", entry, failure))
		}
	}
	return loops, err
}

// isGone reports whether a device that is looked at was detached after the listing: its file in
// /sys, what that says, and the device go one after the other.
func isGone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO)
}

func lookAt(entry string) (l loop, err error) {
	file, err := os.ReadFile(entry)
	if err != nil {
		return l, err
	}
	opened, err := os.Open("/dev/" + filepath.Base(filepath.Dir(filepath.Dir(entry))))
	if err != nil {
		return l, err
	}
	defer opened.Close()
	info, err := unix.IoctlLoopGetStatus64(int(opened.Fd()))
	if err != nil {
		return l, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(opened.Fd()), &stat); err != nil {
		return l, err
	}
	l.path, l.number, l.shows = opened.Name(), stat.Rdev, inode{info.Device, info.Inode}
	l.attached = unix.ByteSliceToString(info.File_name[:])
	l.file = strings.TrimSuffix(strings.TrimSuffix(string(file), "\n"), " (deleted)")
	return l, nil
}

func detachLoops(ctx context.Context, folder string) error {
	loops, err := loopsOf(folder)
	for _, loop := range slices.Backward(loops) {
		opened, failure := loopdev.LoopAt(loop.at())
		if opened != nil {
			failure = opened.Detach(ctx)
		}
		err = errors.Join(err, failure)
	}
	return err
}

// goneFolders are folders of tests that aren't there any more, of whose files there are
// loop devices.
func goneFolders(root string) (gone []string, err error) {
	loops, err := allLoops()
	for _, loop := range loops {
		for _, file := range []string{loop.file, loop.attached} {
			below, _ := strings.CutPrefix(file, root+"/")
			name, _, _ := strings.Cut(below, "/")
			folder := filepath.Join(root, name)
			_, missing := os.Lstat(folder)
			if below != file && strings.HasPrefix(name, owned.Prefix) && errors.Is(missing, os.ErrNotExist) && !slices.Contains(gone, folder) {
				gone = append(gone, folder)
			}
		}
	}
	return gone, err
}
