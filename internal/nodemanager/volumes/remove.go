package volumes

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
)

// Remove removes the directory of a volume with its data, which doesn't outlive the pod. What was
// mounted at or inside it is unmounted, not removed.
func Remove(ctx context.Context, mounter mount.Mounter, dir string) error {
	if err := mount.UnmountBelow(mounter, dir); err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	return filetree.RemoveTree(ctx, parent, filepath.Base(dir))
}
