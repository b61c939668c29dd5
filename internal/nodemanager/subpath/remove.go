package subpath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Remove unmounts all parts of a volume in a folder of the agent's own,
// <folder>/<container>/<index>, and removes the folder. Anything but mount points stays there,
// and is an error. A folder that doesn't exist is a success.
func Remove(mounter mount.Mounter, folder string) error {
	if err := mount.UnmountBelow(mounter, folder); err != nil {
		return err
	}
	containers, err := list(folder)
	if err != nil {
		return err
	}
	for _, container := range containers {
		if err := removeTargets(mounter, container); err != nil {
			return err
		}
	}
	return volumes.RemoveEmptyDir(folder)
}

func removeTargets(mounter mount.Mounter, container string) error {
	targets, err := list(container)
	if err != nil {
		return err
	}
	for _, target := range targets {
		if err := removeTarget(mounter, target); err != nil {
			return err
		}
	}
	return volumes.RemoveEmptyDir(container)
}

func removeTarget(mounter mount.Mounter, target string) error {
	if err := mount.UnmountBelow(mounter, target); err != nil {
		return err
	}
	info, err := os.Lstat(target)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return volumes.RemoveEmptyDir(target)
	default:
		return volumes.UnbindFile(mounter, target)
	}
}

// list returns the paths in a directory, which it doesn't open; none if the directory doesn't
// exist.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("looking for mounted parts of a volume: %w", err)
	}
	paths := make([]string, 0, len(entries))
	for _, entry := range entries {
		paths = append(paths, filepath.Join(dir, entry.Name()))
	}
	return paths, nil
}
