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

// Folder holds, in a directory that is being emptied, a directory for each caller, by token.
const Folder = ".stowage-recycle"

// InspectionFile is the file there with the progress of the inspection.
const InspectionFile = "looked"

// Pass is one call's share of a recycling.
type Pass struct {
	backend.Recycling
	// folder is the working directory, in the one that is emptied.
	folder string
	// Until is when the call ends, so that others can work.
	Until time.Time
}

// Recycle does one call's share of the work. It finds what earlier calls did.
func Recycle(ctx context.Context, root tree.Dir, pass Pass) (err error) {
	if err := checkPlain(ctx, root, pass.Recycling); err != nil {
		return err
	}
	if pass.folder, err = workFolder(ctx, root, pass.Token); err != nil {
		return err
	}
	mine := pass.folder + "/" + pass.Token
	if err := tree.EnsureDir(ctx, root, mine, share.OwnerOnly); err != nil {
		return fmt.Errorf("making directory %s: %w", mine, err)
	}
	// After the directory was made: a caller that set another token since then removes it, or its
	// token is seen now.
	if err := pass.Confirm(ctx); err != nil {
		return errors.Join(err, pass.removeWorkFolders(ctx, root))
	}
	err = tree.Within(ctx, root, mine, func(aside tree.Dir) error { return pass.moveAsideAndRemove(ctx, root, aside) })
	switch {
	case errors.Is(err, backend.InProgress):
		return err
	case errors.Is(err, tree.ErrUnfinished):
		return backend.InProgress.Errorf("directory %s has more files than could be removed so far: removing goes on", pass.Path)
	case err != nil:
		return fmt.Errorf("removing what is in directory %s: %w", pass.Path, err)
	}
	if err := tree.RemoveFile(ctx, root, pass.folder+"/"+InspectionFile); err != nil {
		return fmt.Errorf("removing file %s/%s: %w", pass.folder, InspectionFile, err)
	}
	if err := pass.removeWorkFolders(ctx, root); err != nil {
		return err
	}
	return checkEmpty(ctx, root, pass.Recycling)
}

// workFolder is the working directory. If a tenant made something else with that name, it is one of
// this caller's own: other callers move and remove it like all content.
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
func checkPlain(ctx context.Context, root tree.Dir, request backend.Recycling) error {
	there, err := tree.Exists(ctx, root, share.Folder)
	if err != nil || !there {
		return err
	}
	return backend.Conflict.Errorf("directory %s of server %s has a directory %s in it, as the share of a StorageBackend has: "+
		"nothing is removed: remove what is to go by hand", request.Path, request.Server, share.Folder)
}

// moveAsideAndRemove inspects the directory, where it must, before it removes anything.
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
		// The rest was inspected: the next call begins with removing.
		if failed := inspection.MarkDone(ctx, root); failed != nil {
			return failed
		}
	}
	return err
}

// moveAndRemove removes what was moved aside, and the directories into which other callers could
// move more; then it moves all else aside, and removes that. Inspecting and removing may have taken
// a while, so it confirms once more that the data is to go.
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

// newInspection is the inspection of a directory before it is emptied. Its progress is where stale
// callers can't write any more, and belongs to one claim's data.
func (e Pass) newInspection(self uint32) *inspect.Inspection {
	return &inspect.Inspection{File: e.folder + "/" + InspectionFile, Aside: e.folder + "/" + e.Token + "-look", Of: e.Data, Self: self, Until: e.Until}
}

// checkEmptiable inspects a directory if the server maps root to another user, so that it isn't half
// removed.
func checkEmptiable(ctx context.Context, root tree.Dir, inspection *inspect.Inspection) error {
	err := inspection.Run(ctx, root, root)
	if errors.Is(err, fs.ErrPermission) {
		return backend.Unavailable.Errorf("the directory can't be emptied, and nothing of it was removed: the server makes user %d of root, "+
			"which isn't allowed to: export it with no_root_squash, or remove the files by hand: %w", inspection.Self, err)
	}
	return err
}

// checkEmpty checks that the directory is empty: a client may still write there.
func checkEmpty(ctx context.Context, root tree.Dir, request backend.Recycling) error {
	for entry, err := range root.List(ctx, tree.Cursor{}) {
		if err != nil {
			return err
		}
		return backend.InProgress.Errorf("directory %s holds %s again: removing goes on", request.Path, entry.Name)
	}
	return nil
}

// removeWorkFolders removes the working directories, unless they hold something.
func (e Pass) removeWorkFolders(ctx context.Context, root tree.Dir) error {
	for _, path := range []string{e.folder + "/" + e.Token, e.folder} {
		err := tree.At(ctx, root, path, func(parent tree.Dir, name string) error { return parent.RemoveDir(ctx, name) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("removing directory %s: %w", path, err)
		}
	}
	return nil
}
