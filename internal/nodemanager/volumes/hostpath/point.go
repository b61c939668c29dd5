package hostpath

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// besidePrefix begins the name of a mount point of the other kind until it is exchanged.
const besidePrefix = ".other-"

// ensureKind makes an existing mount point a directory or a file, like the source. One of the other
// kind was made to reserve the volume for this pod. Then the kind of the path was not known yet, or
// was another. The name is the reservation: it exists at every moment.
func (p Plugin) ensureKind(ctx context.Context, dir string, isDir bool) error {
	beside := filepath.Join(filepath.Dir(dir), besidePrefix+filepath.Base(dir))
	// Left by a crash before the end.
	if err := p.Unpublish(ctx, beside); err != nil {
		return err
	}
	table, err := p.mounter.Table()
	if err != nil || table.IsMountPoint(dir) {
		return err
	}
	there, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && there.IsDir() == isDir {
		return nil
	}
	if err != nil {
		return err
	}
	if err := checkHoldsNothing(dir, there); err != nil {
		return err
	}
	if err := makePoint(beside, isDir); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, beside, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE); err != nil {
		return &os.PathError{Op: "exchanging the mount point", Path: dir, Err: err}
	}
	return p.Unpublish(ctx, beside)
}

func makePoint(path string, isDir bool) error {
	if isDir {
		return os.Mkdir(path, pointMode)
	}
	return volumes.EnsureFile(path)
}

// checkHoldsNothing returns an error if files were put where a mount is missing.
func checkHoldsNothing(path string, info os.FileInfo) error {
	empty := info.Mode().IsRegular() && info.Size() == 0
	if info.IsDir() {
		opened, err := os.Open(path)
		if err != nil {
			return err
		}
		defer opened.Close()
		if empty, err = filetree.IsEmpty(opened); err != nil {
			return err
		}
	}
	if !empty {
		return fmt.Errorf("mounting at %s: it holds something: inspect it, and remove it by hand", path)
	}
	return nil
}
