package nfs

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/snapshots"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// sourceOf checks what the volume of a request is to be a copy of, and returns the snapshot's handle, or the other
// volume's id, and the namespace of its claim.
func (b *nfsBackend) sourceOf(ctx context.Context, root tree.Dir, request backend.Request) (id, namespace string, err error) {
	of, namespace := request.Source, request.SourceNamespace()
	if of.Given {
		if namespace, err = b.snapshots.Namespace(ctx, root, of.Snapshot); err != nil {
			return "", "", err
		}
	}
	if of.ID == "" {
		_, err := b.snapshots.Restorable(ctx, root, of.Snapshot, namespace)
		return of.Snapshot, namespace, err
	}
	found, err := b.copiedVolume(ctx, root, of.ID)
	if err == nil && found.Claim != snapshots.Claim(of.Claim) {
		err = backend.Conflict.Errorf("volume %s is that of claim %s/%s, uid %s: it isn't copied", of.ID,
			tree.Printable(found.Claim.Namespace), tree.Printable(found.Claim.Name), tree.Printable(string(found.Claim.UID)))
	}
	return of.ID, namespace, err
}

// copiedVolume finds the volume that another is a copy of. One that is gone has no copy.
func (b *nfsBackend) copiedVolume(ctx context.Context, root tree.Dir, id string) (snapshots.Volume, error) {
	found, err := b.volumeToCopy(ctx, root, id)
	if errors.Is(err, backend.NotFound) {
		err = backend.Invalid.Errorf("volume %s, which was to be copied, is gone: create the claim again, from another", id)
	}
	return found, err
}

// ensureCopied copies a snapshot, or another volume, to the volume's directory, which doesn't exist until all is
// there.
func (b *nfsBackend) ensureCopied(ctx context.Context, root tree.Dir, volume record) error {
	there, err := tree.Exists(ctx, root, volume.Directory)
	switch {
	case err != nil:
		return err
	case there && volume.Restored:
		// An earlier call may have been cut off just before the end.
		return b.snapshots.ForgetRestore(ctx, root, volume.ID, time.Now().Add(b.share.Slice))
	case there:
		return b.explainTaken(ctx, root, volume.Directory, nil)
	}
	return b.snapshots.Restore(ctx, root, snapshots.Restoration{
		ID: volume.ID, Namespace: volume.Claim.Namespace, Directory: volume.Directory,
		Source: func() (string, error) { return b.directoryToCopy(ctx, root, volume) },
		Complete: func() error {
			volume.Restored = true
			return writeRecord(ctx, root, volume)
		},
	})
}

// directoryToCopy finds the directory of what a volume is a copy of.
func (b *nfsBackend) directoryToCopy(ctx context.Context, root tree.Dir, volume record) (string, error) {
	if backend.IsSnapshotID(volume.Source) {
		return b.snapshots.Restorable(ctx, root, volume.Source, cmp.Or(volume.SourceNamespace, volume.Claim.Namespace))
	}
	found, err := b.copiedVolume(ctx, root, volume.Source)
	return found.Directory, err
}
