package volumes

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// Remove removes the directory of a volume with its data, which doesn't outlive the pod. What was
// mounted at or inside it is unmounted, not removed.
func Remove(ctx context.Context, mounter mount.Mounter, dir string) error {
	// As in Unbind: a file system of the volume's own leaves an empty directory behind.
	if mounter.Unmount(dir) == nil && unix.Rmdir(dir) == nil {
		return nil
	}
	if err := mount.UnmountBelow(mounter, dir); err != nil {
		return err
	}
	parent, err := safepath.OpenDir(filepath.Dir(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	return filetree.RemoveUnmounted(ctx, parent, filepath.Base(dir))
}
