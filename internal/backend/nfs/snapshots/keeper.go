package snapshots

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/copying"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// Keeper makes, finds and deletes the snapshots of one StorageBackend of one cluster.
type Keeper struct {
	Cluster, Backend string
	Copier           *copying.Copier
	// Slice is how long one call works, before others can.
	Slice time.Duration
}

// Volume is a volume of which a snapshot is made.
type Volume struct {
	Directory string
	Claim     Claim
}

// Create makes a snapshot, or goes on making it: backend.InProgress. Source finds its volume, which has to be
// there until all is copied; its errors of kind NotFound say that it is not. The errors are those of
// backend.Snapshotter.
func (k Keeper) Create(
	ctx context.Context, root tree.Dir, request backend.SnapshotRequest, source func() (Volume, error),
) (*backend.Snapshot, error) {
	found, err := k.find(ctx, root, request.ID)
	if err == nil && found == nil {
		found, err = k.begin(ctx, root, request, source)
	}
	switch {
	case err != nil:
		return nil, err
	case found.Volume != request.Volume:
		return nil, backend.Conflict.Errorf("snapshot %s is of volume %s", found.ID, tree.Printable(found.Volume))
	case found.Deleting && !request.Unwanted:
		if err := k.remove(ctx, root, found); err != nil {
			return nil, err
		}
		return nil, backend.InProgress.Errorf("what there was of snapshot %s is removed: it is made again", found.ID)
	}
	made, err := described(ctx, root, found)
	switch {
	case err != nil || request.Unwanted:
		return made, err
	case made.Ready:
		// An earlier call may have been cut off just before the end.
		err = k.Copier.Forget(ctx, root, found.ID, dataPath(found.ID)+asideSuffix, time.Now().Add(k.Slice))
	default:
		err = k.complete(ctx, root, found, source)
	}
	if err != nil {
		return nil, err
	}
	return described(ctx, root, found)
}

// begin writes the record. A volume that is gone has no snapshot.
func (k Keeper) begin(ctx context.Context, root tree.Dir, request backend.SnapshotRequest, source func() (Volume, error)) (*record, error) {
	if len(request.Parameters) > 0 {
		return nil, backend.Invalid.Errorf("snapshots of NFS volumes have no parameters, and the VolumeSnapshotClass has %d: use a class without", len(request.Parameters))
	}
	if request.Unwanted {
		return nil, backend.NotFound.Errorf("no snapshot %s was begun", request.ID)
	}
	of, err := source()
	switch {
	case err != nil:
		return nil, err
	case of.Claim.Namespace != request.Namespace:
		return nil, backend.Invalid.Errorf("volume %s was made for a claim of namespace %s, and only there it has snapshots", request.Volume, tree.Printable(of.Claim.Namespace))
	}
	begun := record{ID: request.ID, Cluster: k.Cluster, Backend: k.Backend, Snapshot: request.Owner, Volume: request.Volume, Claim: of.Claim}
	if err := tree.EnsureDir(ctx, root, Folder, share.OwnerOnly); err != nil {
		return nil, fmt.Errorf("making %s on the share: %w", Folder, err)
	}
	return &begun, write(ctx, root, begun)
}

// complete copies the volume. What can't be copied has no snapshot: it is removed before the error says so.
func (k Keeper) complete(ctx context.Context, root tree.Dir, found *record, source func() (Volume, error)) error {
	of, err := source()
	if err == nil {
		err = k.Copier.Run(ctx, root, copying.Copy{
			ID: found.ID, Namespace: found.Claim.Namespace, From: of.Directory, To: dataPath(found.ID), Aside: dataPath(found.ID) + asideSuffix, Until: time.Now().Add(k.Slice),
			Complete: func() error {
				now := time.Now().UTC().Truncate(time.Second)
				found.Made = &now
				return write(ctx, root, *found)
			},
		})
	}
	if errors.Is(err, backend.NotFound) || errors.Is(err, backend.Invalid) {
		if failed := k.remove(ctx, root, found); failed != nil {
			return failed
		}
	}
	return err
}

// Find returns a snapshot. NotFound says that there is none.
func (k Keeper) Find(ctx context.Context, root tree.Dir, handle string) (*backend.Snapshot, error) {
	found, err := k.find(ctx, root, handle)
	switch {
	case err != nil:
		return nil, err
	case found == nil || found.Deleting:
		return nil, backend.NotFound.Errorf("there is no snapshot %s", handle)
	}
	return described(ctx, root, found)
}

// Held returns what a record says of a snapshot, in the directory of records. One that isn't this backend's, or is
// damaged, is an error of kind Conflict.
func (k Keeper) Held(ctx context.Context, dir tree.Dir, handle string) (*backend.Held, error) {
	data, err := dir.ReadFile(ctx, handle+recordSuffix, maxRecord)
	if err != nil {
		return nil, fmt.Errorf("reading the record of snapshot %s: %w", handle, err)
	}
	found, err := k.decode(data, handle)
	if err != nil {
		return nil, err
	}
	held := &backend.Held{ID: found.ID, Snapshot: found.Snapshot, Retained: found.Retained}
	held.Claim.Namespace, held.Claim.Name, held.Claim.UID = found.Claim.Namespace, found.Claim.Name, found.Claim.UID
	return held, nil
}

// Retain marks the record of a snapshot, unless it is too late.
func (k Keeper) Retain(ctx context.Context, root tree.Dir, handle string) error {
	found, err := k.find(ctx, root, handle)
	switch {
	case err != nil:
		return err
	case found == nil:
		return backend.NotFound.Errorf("there is no snapshot %s", handle)
	case found.Deleting:
		return backend.NotFound.Errorf("it is too late to keep snapshot %s: it is being removed", handle)
	case found.Retained:
		return nil
	}
	found.Retained = true
	return write(ctx, root, *found)
}

// described is what there is of a snapshot.
func described(ctx context.Context, root tree.Dir, found *record) (*backend.Snapshot, error) {
	made := &backend.Snapshot{Handle: found.ID, Volume: found.Volume}
	there, err := tree.Exists(ctx, root, dataPath(found.ID))
	if there && found.Made != nil {
		made.Created, made.Ready = *found.Made, true
	}
	return made, err
}

// Delete removes a snapshot. Until all is removed, it is backend.InProgress.
func (k Keeper) Delete(ctx context.Context, root tree.Dir, handle string) error {
	found, err := k.find(ctx, root, handle)
	if found == nil || err != nil {
		return err
	}
	return k.remove(ctx, root, found)
}

// remove removes the data, and then the record.
func (k Keeper) remove(ctx context.Context, root tree.Dir, found *record) error {
	if !found.Deleting {
		found.Deleting = true
		if err := write(ctx, root, *found); err != nil {
			return err
		}
	}
	until := time.Now().Add(k.Slice)
	if err := k.Copier.Forget(ctx, root, found.ID, dataPath(found.ID)+asideSuffix, until); err != nil {
		return err
	}
	err := tree.Within(ctx, root, Folder, func(dir tree.Dir) error { return tree.RemoveTree(ctx, dir, found.ID, until) })
	switch {
	case errors.Is(err, tree.ErrUnfinished):
		return backend.InProgress.Errorf("snapshot %s has more files than could be removed so far: removing goes on", found.ID)
	case err != nil:
		return fmt.Errorf("removing snapshot %s: %w", found.ID, err)
	}
	return tree.RemoveFile(ctx, root, recordPath(found.ID))
}

// Namespace returns the namespace of the claim that a snapshot is of; "" where there is no snapshot.
func (k Keeper) Namespace(ctx context.Context, root tree.Dir, handle string) (string, error) {
	found, err := k.find(ctx, root, handle)
	if found == nil || err != nil {
		return "", err
	}
	return found.Claim.Namespace, nil
}

// Restorable returns the directory of a snapshot that is to be restored to a claim of a namespace. Where that
// can't be, the error is Invalid if it doesn't change.
func (k Keeper) Restorable(ctx context.Context, root tree.Dir, handle, namespace string) (directory string, err error) {
	found, err := k.find(ctx, root, handle)
	switch {
	case err != nil:
		return "", err
	case found == nil || found.Deleting:
		return "", backend.Invalid.Errorf("there is no snapshot %s, which was to be restored: create the claim again, from another", handle)
	case found.Claim.Namespace != namespace:
		return "", backend.Invalid.Errorf("snapshot %s is of a claim of namespace %s, and isn't one of the VolumeSnapshot's namespace", handle, tree.Printable(found.Claim.Namespace))
	}
	made, err := described(ctx, root, found)
	if err == nil && !made.Ready {
		err = backend.Unavailable.Errorf("snapshot %s, which is to be restored, isn't complete yet", handle)
	}
	return dataPath(handle), err
}

// Restoration is a volume that is restored.
type Restoration struct {
	// Source finds the directory that is copied, before the copy and again at its end: of one whose removal began
	// in between, files may be missing.
	Source func() (directory string, err error)
	// ID of the volume, the namespace of its claim, and its directory, which doesn't exist until all is there.
	ID, Namespace, Directory string
	// Complete is called just before the directory gets its name.
	Complete func() error
}

// Restore copies a snapshot, or another volume, to the directory of a volume. Until all is there, it is
// backend.InProgress.
func (k Keeper) Restore(ctx context.Context, root tree.Dir, of Restoration) error {
	from, err := of.Source()
	if err != nil {
		return err
	}
	return k.Copier.Run(ctx, root, copying.Copy{
		ID: of.ID, Namespace: of.Namespace, From: from, To: of.Directory, Aside: restoring + "/" + of.ID, Until: time.Now().Add(k.Slice),
		Complete: func() error {
			if _, err := of.Source(); err != nil {
				return err
			}
			return of.Complete()
		},
	})
}

// ForgetRestore removes what was copied for a volume that is being deleted. Until all is removed, it is
// backend.InProgress.
func (k Keeper) ForgetRestore(ctx context.Context, root tree.Dir, id string, until time.Time) error {
	return k.Copier.Forget(ctx, root, id, restoring+"/"+id, until)
}
