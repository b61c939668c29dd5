package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	nfsshare "github.com/stowage-dev/stowage/internal/backend/nfs/share"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/inspect"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// removalSlice is how long one call removes files before it lets others work. The
// next call goes on.
const removalSlice = 5 * time.Second

// Delete removes, archives or lets go of the directory, as the spec says.
func (b *nfsBackend) Delete(ctx context.Context, id string) error {
	_, err := nfsshare.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (any, error) {
		return nil, b.delete(ctx, root, id)
	})
	return b.translate(fmt.Sprintf("deleting volume %s", id), err)
}

// delete does to a volume what the spec says. What was begun is in the record, so
// that a later call ends it in the same way.
func (b *nfsBackend) delete(ctx context.Context, root tree.Dir, id string) error {
	if !validID.MatchString(id) {
		return backend.Conflict.Errorf("%q is no id of a volume: nothing is removed for it", id)
	}
	found, err := findRecord(ctx, root, id)
	if err != nil || found == nil {
		return err
	}
	if err := b.checkOwner(found); err != nil {
		return err
	}
	until := time.Now().Add(b.share.Slice)
	if found.Deletion == "" {
		if err := b.beginDeletion(ctx, root, found, until); err != nil {
			return err
		}
	}
	switch found.Deletion {
	case stowagev1alpha1.NFSArchive:
		return b.archive(ctx, root, *found)
	case stowagev1alpha1.NFSRetain:
		// It keeps its place: no other volume may come to lie in it.
		return keepRecord(ctx, root, id, retained+"/"+id+recordSuffix)
	default:
		return b.remove(ctx, root, *found, until)
	}
}

// condemn decides what becomes of a volume, and writes it down. If its files can't
// be removed, nothing is begun.
func (b *nfsBackend) beginDeletion(ctx context.Context, root tree.Dir, volume *record, until time.Time) error {
	holder, err := markAt(ctx, root, volume.Directory)
	if err != nil {
		return err
	}
	if holder == "" {
		err = checkUnmarked(ctx, root, *volume)
	} else if holder == volume.mark() && b.spec.onDelete == stowagev1alpha1.NFSDelete {
		err = b.checkRemovable(ctx, root, *volume, until)
	}
	if err == nil {
		// First: what is left of it then would be left for good.
		err = tree.RemoveFile(ctx, root, inspectionPath(volume.ID))
	}
	if err != nil {
		return err
	}
	volume.Deletion = b.spec.onDelete
	return writeRecord(ctx, root, *volume)
}

// checkUnmarked refuses to forget a volume whose directory is there and bears no
// mark. A crash between record and mark leaves no directory.
func checkUnmarked(ctx context.Context, root tree.Dir, volume record) error {
	there, err := tree.Exists(ctx, root, volume.Directory)
	if err != nil || !there {
		return err
	}
	return backend.Conflict.Errorf("directory %s is there, but its mark %s/%s isn't: nothing is removed: "+
		"move the directory away, or make the mark again: a symlink to %s",
		volume.Directory, directories, volume.Directory, volume.mark())
}

// checkRemovable looks through a volume whose server doesn't let us act as root.
func (b *nfsBackend) checkRemovable(ctx context.Context, root tree.Dir, volume record, until time.Time) error {
	self, err := tree.Lookup(ctx, root, recordPath(volume.ID))
	if err != nil || self.UID == 0 {
		return err
	}
	inspection := &inspect.Inspection{
		File: inspectionPath(volume.ID), Aside: temporary + "/" + volume.ID,
		Of: volume.mark() + "/" + volume.Directory, Self: self.UID, Until: until,
	}
	err = tree.Within(ctx, root, volume.Directory, func(dir tree.Dir) error { return inspection.Run(ctx, root, dir) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return backend.Unavailable.Errorf("directory %s can't be removed, and nothing of it was: the server makes user %d of root, "+
			"who isn't allowed to: export the share with no_root_squash, remove the files by hand, or set nfs.onDelete to Archive or Retain: %w",
			volume.Directory, self.UID, err)
	case backend.KindOf(err) != "":
		return fmt.Errorf("directory %s: %w", volume.Directory, err)
	}
	return err
}

// remove takes the directory out of sight, then removes it, then what was ours.
func (b *nfsBackend) remove(ctx context.Context, root tree.Dir, volume record, until time.Time) error {
	if err := moveAway(ctx, root, volume, deleting+"/"+volume.ID); err != nil {
		return err
	}
	err := tree.Within(ctx, root, deleting, func(dir tree.Dir) error { return tree.RemoveTree(ctx, dir, volume.ID, until) })
	if errors.Is(err, tree.ErrUnfinished) {
		return backend.InProgress.Errorf("directory %s has more files than could be removed so far: removing goes on", volume.Directory)
	}
	if err != nil {
		return fmt.Errorf("removing the files of directory %s: %w", volume.Directory, err)
	}
	if err := releaseDirectory(ctx, root, volume); err != nil {
		return err
	}
	return tree.RemoveFile(ctx, root, recordPath(volume.ID))
}

// archive keeps the directory and the record, under a name that says whose it was
// and that no other volume can have.
func (b *nfsBackend) archive(ctx context.Context, root tree.Dir, volume record) error {
	kept := archived + "/" + archiveName(volume)
	if err := moveAway(ctx, root, volume, kept); err != nil {
		return err
	}
	if err := releaseDirectory(ctx, root, volume); err != nil {
		return err
	}
	return keepRecord(ctx, root, volume.ID, kept+recordSuffix)
}

// archiveName is <namespace>_<name>_<id>, cut to what file systems take.
func archiveName(volume record) string {
	prefix := unsafeChars.ReplaceAllString(volume.Claim.Namespace+"_"+volume.Claim.Name, "_")
	room := maxPart - len(recordSuffix) - len(volume.ID) - 1
	return strings.TrimLeft(prefix[:min(len(prefix), room)], ".") + "_" + volume.ID
}

// moveAway moves the volume's directory to a path that is its alone, if it is its
// own and still there. If it was moved before, what has its name now is another's.
func moveAway(ctx context.Context, root tree.Dir, volume record, to string) error {
	mine, err := isReserved(ctx, root, volume)
	if err != nil || !mine {
		return err
	}
	moved, err := tree.Exists(ctx, root, to)
	if err != nil || moved {
		return err
	}
	there, err := tree.Exists(ctx, root, volume.Directory)
	if err != nil || !there {
		return err
	}
	// Opening it makes sure that it is a directory, and of this file system.
	err = tree.Within(ctx, root, volume.Directory, func(tree.Dir) error { return nil })
	if err == nil {
		err = tree.Move(ctx, root, volume.Directory, to)
	}
	if err != nil {
		return fmt.Errorf("moving directory %s out of sight: %w", volume.Directory, err)
	}
	return nil
}

// keepRecord moves a volume's record out of those that are in use.
func keepRecord(ctx context.Context, root tree.Dir, id, to string) error {
	err := tree.Move(ctx, root, recordPath(id), to)
	if err != nil {
		return fmt.Errorf("putting the record of volume %s aside: %w", id, err)
	}
	return nil
}
