package recycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/inspect"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// Folder holds, in a directory that is being emptied, a directory for each who is
// at it, by token.
const Folder = ".stowage-recycle"

// Looked is the file there that says how much was looked through.
const InspectionFile = "looked"

// Pass is one call's share of a recycling.
type Pass struct {
	backend.Recycling
	// in is the directory that is worked in, in the one that is emptied.
	folder string
	// Until is when the call ends, and lets others work.
	Until time.Time
}

// Recycle does one call's share of the work. It finds what earlier calls did.
func Recycle(ctx context.Context, root tree.Dir, wanted Pass) (err error) {
	if err := checkPlain(ctx, root, wanted.Recycling); err != nil {
		return err
	}
	if wanted.folder, err = workFolder(ctx, root, wanted.Token); err != nil {
		return err
	}
	mine := wanted.folder + "/" + wanted.Token
	if err := tree.EnsureDir(ctx, root, mine, share.OwnerOnly); err != nil {
		return fmt.Errorf("making directory %s: %w", mine, err)
	}
	// Not before it was made: who gave the volume object another token since this one
	// removes it, or is seen now.
	if err := wanted.Confirm(ctx); err != nil {
		return errors.Join(err, wanted.removeWorkFolders(ctx, root))
	}
	err = tree.Within(ctx, root, mine, func(aside tree.Dir) error { return wanted.moveAsideAndRemove(ctx, root, aside) })
	switch {
	case errors.Is(err, backend.InProgress):
		return err
	case errors.Is(err, tree.ErrUnfinished):
		return backend.InProgress.Errorf("directory %s has more files than could be removed so far: removing goes on", wanted.Path)
	case err != nil:
		return fmt.Errorf("removing what is in directory %s: %w", wanted.Path, err)
	}
	if err := tree.RemoveFile(ctx, root, wanted.folder+"/"+InspectionFile); err != nil {
		return fmt.Errorf("removing file %s/%s: %w", wanted.folder, InspectionFile, err)
	}
	if err := wanted.removeWorkFolders(ctx, root); err != nil {
		return err
	}
	return checkEmpty(ctx, root, wanted.Recycling)
}

// workplace is the directory to work in. Where a tenant made something else of that
// name, which is to be removed with the rest, it is one of the caller's alone: it is
// moved and removed by others like all that they find.
func workFolder(ctx context.Context, root tree.Dir, token string) (string, error) {
	there, err := root.Lookup(ctx, Folder)
	switch {
	case err == nil && there.Type != tree.Directory:
		return Folder + "-" + token, nil
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return Folder, nil
	default:
		return "", err
	}
}

// checkPlain refuses a directory that is, or was, the share of a StorageBackend: the
// volumes of other claims are in it.
func checkPlain(ctx context.Context, root tree.Dir, wanted backend.Recycling) error {
	there, err := tree.Exists(ctx, root, share.Folder)
	if err != nil || !there {
		return err
	}
	return backend.Conflict.Errorf("directory %s of server %s has a directory %s in it, as the share of a StorageBackend has: "+
		"nothing is removed: remove what is to go by hand", wanted.Path, wanted.Server, share.Folder)
}

// clearAway removes what was moved aside, and what others could move more into; then
// moves all else aside, and removes that. Looking and removing may have taken a while:
// it is asked once more whether the data is to go.
func (e Pass) moveAsideAndRemove(ctx context.Context, root, aside tree.Dir) error {
	self, err := aside.Stat(ctx)
	if err != nil {
		return err
	}
	inspection := e.newInspection(self.UID)
	if self.UID != 0 {
		if err := checkEmptiable(ctx, root, inspection); err != nil {
			return err
		}
	}
	err = e.moveAndRemove(ctx, root, aside)
	if self.UID != 0 && errors.Is(err, tree.ErrUnfinished) {
		// What is left was looked at: the next call begins with removing.
		if failed := inspection.MarkDone(ctx, root); failed != nil {
			return failed
		}
	}
	return err
}

func (e Pass) moveAndRemove(ctx context.Context, root, aside tree.Dir) error {
	err := tree.Within(ctx, root, e.folder, func(all tree.Dir) error { return tree.Empty(ctx, all, e.Until, e.Token, InspectionFile) })
	if err == nil {
		err = tree.Empty(ctx, aside, e.Until)
	}
	if err == nil {
		err = e.Confirm(ctx)
	}
	if err == nil {
		err = tree.MoveAll(ctx, root, e.folder, aside, e.Until)
	}
	if err == nil {
		err = tree.Empty(ctx, aside, e.Until)
	}
	return err
}

// lookBefore is the look through a directory before it is emptied. Its progress lies
// where late callers can't write any more, and is that of one claim's data.
func (e Pass) newInspection(self uint32) *inspect.Inspection {
	return &inspect.Inspection{File: e.folder + "/" + InspectionFile, Aside: e.folder + "/" + e.Token + "-look", Of: e.Data, Self: self, Until: e.Until}
}

// checkEmptiable looks through a directory whose server doesn't let us act as root, so
// that not half of it is removed.
func checkEmptiable(ctx context.Context, root tree.Dir, inspection *inspect.Inspection) error {
	err := inspection.Run(ctx, root, root)
	if errors.Is(err, fs.ErrPermission) {
		return backend.Unavailable.Errorf("the directory can't be emptied, and nothing of it was removed: the server makes user %d of root, "+
			"who isn't allowed to: export it with no_root_squash, or remove the files by hand: %w", inspection.Self, err)
	}
	return err
}

// checkEmpty makes sure of what Recycle promises: somebody may write there still.
func checkEmpty(ctx context.Context, root tree.Dir, wanted backend.Recycling) error {
	for entry, err := range root.List(ctx, tree.Cursor{}) {
		if err != nil {
			return err
		}
		return backend.InProgress.Errorf("directory %s holds %s again: removing goes on", wanted.Path, entry.Name)
	}
	return nil
}

// leave takes away what was made to work in, unless something is in it.
func (e Pass) removeWorkFolders(ctx context.Context, root tree.Dir) error {
	for _, path := range []string{e.folder + "/" + e.Token, e.folder} {
		err := tree.At(ctx, root, path, func(parent tree.Dir, name string) error { return parent.RemoveDir(ctx, name) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("removing directory %s: %w", path, err)
		}
	}
	return nil
}
