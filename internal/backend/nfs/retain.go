package nfs

import (
	"context"
	"fmt"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

var _ backend.Retainer = (*nfsBackend)(nil)

// Retain writes the wish into the volume's record. Its directory keeps its place and
// its mark.
func (b *nfsBackend) Retain(ctx context.Context, id string) (string, error) {
	place, err := share.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (string, error) {
		return b.retain(ctx, root, id)
	})
	return place, b.translate(fmt.Sprintf("retaining volume %s", id), err)
}

func (b *nfsBackend) retain(ctx context.Context, root tree.Dir, id string) (string, error) {
	if !validID.MatchString(id) {
		return "", backend.Conflict.Errorf("%q is no id of a volume: nothing is kept for it", id)
	}
	found, err := findRecord(ctx, root, id)
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "", b.explainNoRecord(ctx, root, id)
	}
	if err := b.checkOwner(found); err != nil {
		return "", err
	}
	if !found.Retained {
		found.Retained = true
		if err := writeRecord(ctx, root, *found); err != nil {
			return "", err
		}
	}
	directory := found.Directory
	if found.Deletion == stowagev1alpha1.NFSDelete {
		// What a removal that had begun left of it.
		directory = deleting + "/" + id
	}
	return fmt.Sprintf("%s/%s of server %s", b.spec.path, directory, b.spec.server), nil
}

// unrecorded says why a volume has no record: a server that came up without its disk
// has none of any volume, and this one's data is there again later.
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
