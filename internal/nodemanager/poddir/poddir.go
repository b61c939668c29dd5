// Package poddir is the directories of a node's pods, in the kubelet's layout. It knows which
// volumes, parts of volumes and descriptions of containers a pod has there. With the mount table
// they are the actual state, which survives a restart of the agent. The package reads names only,
// so that a volume that hangs never makes it hang, and removes empty directories only.
package poddir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// volumesDir and devicesDir are the folders of a pod's filesystem and block volumes. In
// subPathsDir, parts of volumes are mounted, and containersDir has the descriptions of
// containers.
const (
	volumesDir    = "volumes"
	devicesDir    = "volumeDevices"
	subPathsDir   = "volume-subpaths"
	containersDir = "containers"
)

// DirMode of the agent's own directories: root alone lists them.
const DirMode = 0o750

// Location is where a volume lies in its pod's directory.
type Location struct {
	// Plugin is the name of the volume type.
	Plugin string
	// Name is the volume's.
	Name string
	// Block: its volumeMode is Block.
	Block bool
}

func (l Location) folder() string {
	if l.Block {
		return devicesDir
	}
	return volumesDir
}

// Tree is the directories of pods, in the kubelet's layout:
// <root>/pods/<pod uid>/volumes/<volume type>/<volume name>, with volumeDevices for block
// volumes, and <root>/pods/<pod uid>/volume-subpaths/<volume name>/<container>/<index> for parts
// of volumes. Together with the mount table it is the actual state: nothing of it is kept in
// memory.
type Tree struct {
	root string
}

// NewTree returns the tree below a folder of the node agent's own, and makes the folder.
func NewTree(root string) (Tree, error) {
	if err := os.MkdirAll(root, DirMode); err != nil {
		return Tree{}, fmt.Errorf("making the folder of pods' directories: %w", err)
	}
	// The mount table shows paths without symlinks, and is compared with these.
	resolved, err := filepath.EvalSymlinks(root)
	if err != nil {
		return Tree{}, fmt.Errorf("finding the folder of pods' directories: %w", err)
	}
	return Tree{root: resolved}, nil
}

func (t Tree) podsDir() string { return filepath.Join(t.root, "pods") }

// PodDir is the directory of a pod.
func (t Tree) PodDir(uid types.UID) string {
	return filepath.Join(t.podsDir(), string(uid))
}

// VolumeDir is the directory of a volume of a pod, or the file of its device.
func (t Tree) VolumeDir(uid types.UID, at Location) string {
	return filepath.Join(t.PodDir(uid), at.folder(), volumes.DirName(at.Plugin), at.Name)
}

// SubPathsDir is the folder in which parts of a volume of a pod are mounted.
func (t Tree) SubPathsDir(uid types.UID, volume string) string {
	return filepath.Join(t.PodDir(uid), subPathsDir, volume)
}

// SubPath is where the part of a container's volumeMount of this index is mounted.
func (t Tree) SubPath(uid types.UID, volume, container string, index int) string {
	return filepath.Join(t.SubPathsDir(uid, volume), container, strconv.Itoa(index))
}

// SubPaths returns the volumes of a pod of which parts are, or were, mounted.
func (t Tree) SubPaths(uid types.UID) ([]string, error) {
	names, err := t.list(filepath.Join(t.PodDir(uid), subPathsDir))
	if err != nil {
		return nil, fmt.Errorf("listing mounted parts of the pod's volumes: %w", err)
	}
	return names, nil
}

func (t Tree) containersDir(uid types.UID) string {
	return filepath.Join(t.PodDir(uid), containersDir)
}

// ContainerDir is the directory of a container's description.
func (t Tree) ContainerDir(uid types.UID, name string) string {
	return filepath.Join(t.containersDir(uid), name)
}

// EnsureParent makes the folder that a volume's directory lies in.
func (t Tree) EnsureParent(uid types.UID, at Location) error {
	if err := os.MkdirAll(filepath.Dir(t.VolumeDir(uid, at)), DirMode); err != nil {
		return fmt.Errorf("making the pod's directory: %w", err)
	}
	return nil
}

// Pods returns the pods that have a directory.
func (t Tree) Pods() ([]types.UID, error) {
	names, err := t.list(t.podsDir())
	if err != nil {
		return nil, fmt.Errorf("listing the directories of pods: %w", err)
	}
	uids := make([]types.UID, 0, len(names))
	for _, name := range names {
		uids = append(uids, types.UID(name))
	}
	return uids, nil
}

// HasPod reports whether a pod has a directory.
func (t Tree) HasPod(uid types.UID) (bool, error) {
	_, err := os.Lstat(t.PodDir(uid))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// HasVolume reports whether a volume has a directory in a pod's: it is, was, or is about to be
// mounted there. It reads names only, as Volumes does.
func (t Tree) HasVolume(uid types.UID, at Location) (bool, error) {
	names, err := t.list(filepath.Dir(t.VolumeDir(uid, at)))
	return slices.Contains(names, at.Name), err
}

// Volumes returns the volumes that have a directory, or a device, in a pod's. It reads names
// only: if the server of a volume hangs, it doesn't.
func (t Tree) Volumes(uid types.UID) ([]Location, error) {
	var found []Location
	for _, kind := range []Location{{}, {Block: true}} {
		dir := filepath.Join(t.PodDir(uid), kind.folder())
		types, err := t.list(dir)
		if err != nil {
			return nil, fmt.Errorf("listing the pod's volumes: %w", err)
		}
		for _, dirName := range types {
			names, err := t.list(filepath.Join(dir, dirName))
			if err != nil {
				return nil, fmt.Errorf("listing the pod's volumes: %w", err)
			}
			for _, name := range names {
				found = append(found, Location{Plugin: volumes.PluginName(dirName), Name: name, Block: kind.Block})
			}
		}
	}
	return found, nil
}

// RemovePod removes a pod's directory, from which all volumes are gone. It removes empty
// directories only: anything else stays, and is an error.
func (t Tree) RemovePod(uid types.UID) error {
	for _, folder := range []string{volumesDir, devicesDir} {
		dir := filepath.Join(t.PodDir(uid), folder)
		if volumes.RemoveEmptyDir(dir) == nil {
			continue // It is missing, or has no folder of a volume type.
		}
		types, err := t.list(dir)
		if err != nil {
			return fmt.Errorf("removing the pod's directory: %w", err)
		}
		for _, dirName := range types {
			if err := volumes.RemoveEmptyDir(filepath.Join(dir, dirName)); err != nil {
				return err
			}
		}
		if err := volumes.RemoveEmptyDir(dir); err != nil {
			return err
		}
	}
	for _, dir := range []string{filepath.Join(t.PodDir(uid), subPathsDir), t.containersDir(uid), t.PodDir(uid)} {
		if err := volumes.RemoveEmptyDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// list returns the names in a directory of the tree; none if it doesn't exist. It follows no
// symlink: what lies elsewhere isn't the agent's to remove.
func (t Tree) list(dir string) ([]string, error) {
	names, err := safepath.ListBeneath(t.root, dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: inspect what lies there, and remove it by hand", err)
	}
	return names, nil
}
