package leftovers

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/holder"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
)

func disks(folder string) (things []thing, err error) {
	points, err := mounts(folder)
	if err != nil {
		return nil, err
	}
	loops, err := loopDevices(folder)
	return slices.Concat(points, loops), err
}

// removeDisks goes on as long as one less is left after each round.
func removeDisks(ctx context.Context, folder string) error {
	left, err := disks(folder)
	for err == nil && len(left) > 0 {
		before := len(left)
		problem := errors.Join(mount.UnmountBelow(mount.Kernel{}, folder), detachLoops(ctx, folder))
		if left, err = disks(folder); len(left) >= before {
			return errors.Join(problem, err)
		}
	}
	return err
}

// mounts are those in a folder. Those of other mount namespaces go with the processes
// there.
func mounts(folder string) (things []thing, err error) {
	table, err := mount.Kernel{}.Table()
	for _, point := range table.Below(folder) {
		things = append(things, thing{name: "mount " + point.Path + " (" + point.FSType + " of " + point.Source + ")", held: holder.Thing{Path: point.Path}})
	}
	return things, err
}

// cgroups are those of a folder's name, of both versions, each before those in it.
func cgroups(folder string) (things []thing, err error) {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		roots, err := filepath.Glob(pattern + filepath.Base(folder))
		if err != nil {
			return nil, err
		}
		for _, root := range roots {
			below, err := walk(root, fs.ModeDir)
			if err != nil {
				return nil, err
			}
			for _, dir := range below {
				things = append(things, thing{name: "cgroup " + dir})
			}
		}
	}
	return things, nil
}

func removeCgroups(ctx context.Context, folder string) error {
	return until(ctx, func() error {
		found, err := cgroups(folder)
		for _, cgroup := range slices.Backward(found) {
			err = errors.Join(err, unix.Rmdir(cgroup.name[len("cgroup "):]))
		}
		return err
	})
}

func files(folder string) (things []thing, err error) {
	sockets, err := walk(folder, fs.ModeSocket)
	for _, socket := range sockets {
		things = append(things, thing{name: "socket " + socket})
	}
	if _, missing := os.Lstat(folder); missing == nil {
		things = append(things, thing{name: "folder " + folder, held: holder.Thing{Path: folder}})
	}
	return things, err
}

// removeFiles never goes into what is mounted.
func removeFiles(ctx context.Context, folder string) error {
	parent, err := os.Open(filepath.Dir(folder))
	if err != nil {
		return err
	}
	defer parent.Close()
	return filetree.RemoveTree(ctx, parent, filepath.Base(folder))
}

// walk finds the files of a type in a folder, which may change during the walk.
func walk(root string, kind fs.FileMode) (paths []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type() == kind {
			paths = append(paths, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return paths, err
}
