package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/inspect"
	"github.com/stowage-dev/stowage/internal/backend/nfs/naming"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// removalSlice is how long one call removes files before other calls can work. The next call
// continues.
const removalSlice = 5 * time.Second

// Delete removes, archives or retains the directory, as the spec says.
func (b *nfsBackend) Delete(ctx context.Context, id string) error {
	_, err := onShare(ctx, b, "deleting volume "+id, func(ctx context.Context, root tree.Dir) (any, error) {
		return nil, b.delete(ctx, root, id)
	})
	return err
}

// delete treats a volume as the spec says. The record says how it began, so a later call completes
// it in the same way.
func (b *nfsBackend) delete(ctx context.Context, root tree.Dir, id string) error {
	found, err := b.ownRecord(ctx, root, id)
	if err != nil || found == nil {
		return err
	}
	until := time.Now().Add(b.share.Slice)
	if found.Deletion == "" {
		if err := b.beginDeletion(ctx, root, found, until); err != nil {
			return err
		}
	}
	if found.Source != "" {
		if err := b.snapshots.ForgetRestore(ctx, root, id, until); err != nil {
			return err
		}
	}
	switch found.Deletion {
	case stowagev1alpha1.NFSArchive:
		return b.archive(ctx, root, *found)
	case stowagev1alpha1.NFSRetain:
		// The reservation stays: no other volume may get the directory.
		return keepRecord(ctx, root, id, retained+"/"+id+recordSuffix)
	default:
		return b.remove(ctx, root, *found, until)
	}
}

// beginDeletion decides how a volume is deleted, and records it. If the files can't be removed, it
// begins nothing.
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
		// Before the record changes: a later call would not look for this file any more.
		err = tree.RemoveFile(ctx, root, inspectionPath(volume.ID))
	}
	if err != nil {
		return err
	}
	volume.Deletion = b.spec.onDelete
	return writeRecord(ctx, root, *volume)
}

// checkUnmarked refuses to forget a volume if its directory exists without a mark. A crash between
// record and mark leaves no directory.
func checkUnmarked(ctx context.Context, root tree.Dir, volume record) error {
	there, err := tree.Exists(ctx, root, volume.Directory)
	if err != nil || !there {
		return err
	}
	return backend.Conflict.Errorf("directory %s is there, but its mark %s/%s isn't: nothing is removed: "+
		"move the directory away, or make the mark again: a symlink to %s",
		volume.Directory, directories, volume.Directory, volume.mark())
}

// checkRemovable inspects a volume if the server maps root to another user.
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
			"which isn't allowed to: export the share with no_root_squash, remove the files by hand, or set nfs.onDelete to Archive or Retain: %w",
			volume.Directory, self.UID, err)
	case backend.KindOf(err) != "":
		return fmt.Errorf("directory %s: %w", volume.Directory, err)
	}
	return err
}

// remove moves the directory away, then removes it, then its reservation and its record.
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

// archive keeps the directory and the record, under a name that includes the claim's name and that
// no other volume can have.
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

// archiveName is <namespace>_<name>_<id>, truncated to what file systems allow.
func archiveName(volume record) string {
	prefix := naming.UnsafeChars.ReplaceAllString(volume.Claim.Namespace+"_"+volume.Claim.Name, "_")
	room := naming.MaxPart - len(recordSuffix) - len(volume.ID) - 1
	return strings.TrimLeft(prefix[:min(len(prefix), room)], ".") + "_" + volume.ID
}

// moveAway moves the volume's directory to a path of its own, if the directory is reserved for the
// volume and still there. After an earlier move, a directory with the old name is another volume's.
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
		return fmt.Errorf("moving directory %s away: %w", volume.Directory, err)
	}
	return nil
}

// keepRecord moves a volume's record away from those in use.
func keepRecord(ctx context.Context, root tree.Dir, id, to string) error {
	err := tree.Move(ctx, root, recordPath(id), to)
	if err != nil {
		return fmt.Errorf("keeping the record of volume %s: %w", id, err)
	}
	return nil
}
