package nfs

import (
	"context"
	"fmt"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

var _ backend.Retainer = (*nfsBackend)(nil)

// Retain marks the volume's record as retained. The directory and its reservation stay.
func (b *nfsBackend) Retain(ctx context.Context, id string) (string, error) {
	return onShare(ctx, b, "retaining volume "+id, func(ctx context.Context, root tree.Dir) (string, error) {
		return b.retain(ctx, root, id)
	})
}

func (b *nfsBackend) retain(ctx context.Context, root tree.Dir, id string) (string, error) {
	found, err := b.ownRecord(ctx, root, id)
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "", b.explainNoRecord(ctx, root, id)
	}
	if !found.Retained {
		found.Retained = true
		if err := writeRecord(ctx, root, *found); err != nil {
			return "", err
		}
	}
	directory := found.Directory
	if found.Deletion == stowagev1alpha1.NFSDelete {
		// A removal had begun: this is what it left.
		directory = deleting + "/" + id
	}
	return fmt.Sprintf("%s/%s of server %s", b.spec.path, directory, b.spec.server), nil
}

// explainNoRecord returns why a volume has no record. A server that started without its disk has no
// records at all, and the data is there again later.
func (b *nfsBackend) explainNoRecord(ctx context.Context, root tree.Dir, id string) error {
	there, err := tree.Exists(ctx, root, volumes)
	switch {
	case err != nil:
		return err
	case !there:
		return backend.Unavailable.Errorf("share %s of server %s has no directory %s, as if no volume had ever been made: "+
			"look whether the server exports the right disk; if all data is lost, make that directory", b.spec.path, b.spec.server, volumes)
	default:
		return backend.NotFound.Errorf("share %s of server %s has no record of volume %s", b.spec.path, b.spec.server, id)
	}
}
