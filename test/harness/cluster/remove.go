package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/holder"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
)

// Remove removes a cluster's folder with all that its volumes hold. It refuses
// while the cluster runs, where the folder holds something else, and if anything
// stays mounted below it. A folder that is not there is a success.
func Remove(ctx context.Context, dir string) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding the folder %s: %w", dir, err)
	}
	folder := Folder{root}
	if _, err := os.Lstat(root); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if !folder.isMarked() {
		return fmt.Errorf("removing %s: %w", root, ErrForeign)
	}
	lock, err := folder.Lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := folder.unmountVolumes(ctx); err != nil {
		return err // it names what holds them, and a disk that is mounted is held by that
	}
	if err := folder.detachDisks(ctx); err != nil {
		return err
	}
	return removeTree(ctx, root)
}

func removeTree(ctx context.Context, root string) error {
	parent, err := os.Open(filepath.Dir(root))
	if err != nil {
		return fmt.Errorf("removing the folder of the cluster: %w", err)
	}
	defer parent.Close()
	return filetree.RemoveTree(ctx, parent, filepath.Base(root))
}

// unmountVolumes takes away what an agent that is stopped left mounted. Loop devices
// that pods saw stay when their mounts go.
func (f Folder) unmountVolumes(ctx context.Context) error {
	for _, node := range []string{NodeName, SecondNode} {
		if err := mount.UnmountBelow(mount.Kernel{}, f.AgentRoot(node)); err != nil {
			return holder.Thing{Path: f.AgentRoot(node)}.Explain(err)
		}
	}
	return detachAll(ctx, filepath.Join(f.Disks(), "*", "*", stowagev1alpha1.ImageFile))
}

// detachDisks takes away the devices of the cloud's disks, which it makes appear again
// when it is started.
func (f Folder) detachDisks(ctx context.Context) error {
	return detachAll(ctx, filepath.Join(f.cloud(), "images", "*"))
}

func detachAll(ctx context.Context, pattern string) error {
	images, err := filepath.Glob(pattern)
	for _, path := range images {
		err = errors.Join(err, detach(ctx, path))
	}
	return err
}

func detach(ctx context.Context, path string) error {
	image, err := os.Open(path)
	if err != nil {
		return err
	}
	defer image.Close()
	loop, err := loopdev.Find(image)
	if loop == nil || err != nil {
		return err
	}
	return loop.Detach(ctx)
}
