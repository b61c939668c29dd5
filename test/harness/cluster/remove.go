package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/mount"
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
	if err := errors.Join(folder.unmountVolumes(ctx), folder.detachDisks(ctx)); err != nil {
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
	return mount.RemoveTree(ctx, parent, filepath.Base(root))
}
