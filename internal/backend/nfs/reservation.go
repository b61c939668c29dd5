package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/naming"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// ensureReserved reserves the volume's directory for as long as its mark is in our mirror of the
// share. Making the mark fails if one exists there, or if a part of the path above is a mark. It also
// fails if marks are below, because then a directory is there. So the server admits one of all
// volumes, of whatever cluster or process.
func ensureReserved(ctx context.Context, root tree.Dir, volume record) error {
	place := directories + "/" + volume.Directory
	err := makeMark(ctx, root, place, volume.mark())
	if errors.Is(err, fs.ErrNotExist) {
		if err = tree.EnsureDir(ctx, root, path.Dir(place), share.OwnerOnly); err == nil {
			err = makeMark(ctx, root, place, volume.mark())
		}
	}
	if err == nil || errors.Is(err, tree.ErrLost) {
		return err
	}
	holder, found, lookup := findMark(ctx, root, place)
	switch {
	case lookup != nil:
		return fmt.Errorf("reserving directory %s: %w", volume.Directory, errors.Join(err, lookup))
	case holder == volume.mark():
		return nil
	case found:
		return directoryTaken(volume.Directory, holder)
	default:
		return fmt.Errorf("reserving directory %s: %w", volume.Directory, err)
	}
}

func directoryTaken(directory, holder string) error {
	return backend.Conflict.Errorf("directory %s is, is in, or has in it, the directory of another volume (%s): "+
		"leave that in place, and change nfs.directoryTemplate so that no two claims get the same", directory, tree.Printable(holder))
}

func makeMark(ctx context.Context, root tree.Dir, place, text string) error {
	return tree.At(ctx, root, place, func(parent tree.Dir, name string) error {
		return parent.MakeLink(ctx, name, text)
	})
}

// findMark returns the text of the mark at a path or above it. It is found also if there are marks
// below.
func findMark(ctx context.Context, root tree.Dir, place string) (holder string, found bool, err error) {
	for ; place != directories; place = path.Dir(place) {
		err = tree.At(ctx, root, place, func(parent tree.Dir, name string) error {
			holder, err = parent.ReadLink(ctx, name)
			return err
		})
		switch {
		case err == nil:
			return holder, true, nil
		case errors.Is(err, syscall.ENOTDIR):
			continue
		case errors.Is(err, syscall.EINVAL):
			return "directories below it", true, nil
		case errors.Is(err, fs.ErrNotExist):
			return "", false, nil
		default:
			return "", false, err
		}
	}
	return "", false, nil
}

// markAt returns the text of the mark for a directory: empty where there is none.
func markAt(ctx context.Context, root tree.Dir, directory string) (holder string, err error) {
	if err := naming.Check(directory); err != nil {
		return "", err
	}
	err = tree.At(ctx, root, directories+"/"+directory, func(parent tree.Dir, name string) error {
		holder, err = parent.ReadLink(ctx, name)
		return err
	})
	switch {
	case err == nil:
		return holder, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EINVAL):
		return "", nil
	default:
		return "", fmt.Errorf("reading the reservation of directory %s: %w", directory, err)
	}
}

// isReserved reports whether a directory is reserved for the volume.
func isReserved(ctx context.Context, root tree.Dir, volume record) (bool, error) {
	holder, err := markAt(ctx, root, volume.Directory)
	return holder == volume.mark(), err
}

// releaseDirectory removes the reservation of the volume's directory.
func releaseDirectory(ctx context.Context, root tree.Dir, volume record) error {
	mine, err := isReserved(ctx, root, volume)
	if err != nil || !mine {
		return err
	}
	if err := tree.RemoveFile(ctx, root, directories+"/"+volume.Directory); err != nil {
		return fmt.Errorf("releasing directory %s: %w", volume.Directory, err)
	}
	return nil
}
