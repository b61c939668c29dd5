package nfs

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/naming"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// parentMode is the mode of the directories above a volume's: pods can pass through them, and
// change nothing there.
const parentMode = 0o755

// Provision records the volume's owner, reserves its directory, and makes it. Each step finds what
// an earlier attempt did.
func (b *nfsBackend) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	return onShare(ctx, b, "provisioning volume "+request.ID, func(ctx context.Context, root tree.Dir) (*backend.Volume, error) {
		return b.provision(ctx, root, request)
	})
}

func (b *nfsBackend) provision(ctx context.Context, root tree.Dir, request backend.Request) (*backend.Volume, error) {
	if err := request.CheckClaim(validID); err != nil {
		return nil, err
	}
	volume, err := b.ensureRecord(ctx, root, request)
	if err != nil {
		return nil, err
	}
	if err := b.ensureReservation(ctx, root, volume); err != nil {
		return nil, err
	}
	if volume.Source != "" {
		err = b.ensureCopied(ctx, root, volume)
	} else {
		err = b.ensureDirectory(ctx, root, volume)
	}
	if err != nil {
		return nil, err
	}
	return b.volume(volume, request), nil
}

// ensureRecord finds the volume's record, or chooses its directory and writes the record. From then
// on the record says where the volume is, not the template.
func (b *nfsBackend) ensureRecord(ctx context.Context, root tree.Dir, request backend.Request) (record, error) {
	directory, templateErr := naming.Directory(b.spec.template, request)
	taken := false
	if templateErr == nil {
		// Read before the record: another process that makes the directory for this volume at the
		// same time wrote the record first.
		var err error
		if taken, err = b.isTaken(ctx, root, directory); err != nil {
			return record{}, err
		}
	}
	found, err := findRecord(ctx, root, request.ID)
	switch {
	case err != nil:
		return record{}, err
	case found != nil:
		return *found, b.checkResumable(found, request)
	case templateErr != nil:
		return record{}, templateErr
	case taken:
		return record{}, b.explainTaken(ctx, root, directory, nil)
	}
	if err := b.checkRoom(ctx, root, request.Capacity); err != nil {
		return record{}, err
	}
	volume := record{Owner: backend.Owner{ID: request.ID, Cluster: b.cluster, Backend: b.name, Claim: request.Claim}, Directory: directory}
	if request.Source != nil {
		if volume.Source, volume.SourceNamespace, err = b.sourceOf(ctx, root, request); err != nil {
			return record{}, err
		}
	}
	if err := writeRecord(ctx, root, volume); err != nil {
		return record{}, err
	}
	return volume, nil
}

// ensureReservation reserves the volume's directory. A volume that can't have it keeps no record.
func (b *nfsBackend) ensureReservation(ctx context.Context, root tree.Dir, volume record) error {
	err := ensureReserved(ctx, root, volume)
	if !errors.Is(err, backend.Conflict) {
		return err
	}
	return errors.Join(err, tree.RemoveFile(ctx, root, recordPath(volume.ID)))
}

// isTaken reports whether a directory exists. A file in place of a parent is an error.
func (b *nfsBackend) isTaken(ctx context.Context, root tree.Dir, directory string) (bool, error) {
	taken, err := tree.Exists(ctx, root, directory)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, tree.ErrOtherFileSystem) {
		return false, b.explainTaken(ctx, root, directory, err)
	}
	return taken, err
}

// explainTaken returns a Conflict with advice about what is in a directory's place, or in place of
// a parent. A volume's data stays where it is.
func (b *nfsBackend) explainTaken(ctx context.Context, root tree.Dir, directory string, cause error) error {
	holder, found, err := findMark(ctx, root, directories+"/"+directory)
	switch {
	case err != nil:
		return fmt.Errorf("reading the reservation of directory %s: %w", directory, err)
	case found:
		return directoryTaken(directory, holder)
	case cause != nil:
		return backend.Conflict.Errorf("directory %s can't be made on share %s, because something else is on the way, which is no volume's of Stowage: "+
			"look at it and move it away, or change nfs.directoryTemplate: %w", directory, b.spec.path, cause)
	default:
		return backend.Conflict.Errorf("directory %s exists on share %s, and is no volume's of Stowage: "+
			"look at it and move it away, or change nfs.directoryTemplate", directory, b.spec.path)
	}
}

// checkResumable returns an error where a record is not that of the requested volume.
func (b *nfsBackend) checkResumable(found *record, request backend.Request) error {
	if err := b.checkOwner(found); err != nil {
		return err
	}
	switch {
	case found.Claim != request.Claim:
		return backend.Conflict.Errorf("volume %s belongs to claim %s/%s, uid %s",
			found.ID, tree.Printable(found.Claim.Namespace), tree.Printable(found.Claim.Name), tree.Printable(string(found.Claim.UID)))
	case found.Deletion != "":
		return backend.Conflict.Errorf("volume %s is being deleted: it isn't made again", found.ID)
	case request.Source != nil && found.Source == "":
		return backend.Conflict.Errorf("volume %s began empty: nothing is copied to it", found.ID)
	default:
		return naming.Check(found.Directory)
	}
}

// checkRoom refuses what can never fit. Otherwise the size of a directory is only a label.
func (b *nfsBackend) checkRoom(ctx context.Context, root tree.Dir, capacity resource.Quantity) error {
	space, err := root.Space(ctx)
	if err != nil || space.Total == 0 {
		return err
	}
	total := bytes(space.Total)
	if capacity.Cmp(total) > 0 {
		return backend.Exhausted.Errorf("share %s of server %s has %s in all: ask for less than %s", b.spec.path, b.spec.server, total.String(), capacity.String())
	}
	return nil
}

// ensureDirectory makes the reserved directory, and sets its owner and mode.
func (b *nfsBackend) ensureDirectory(ctx context.Context, root tree.Dir, volume record) error {
	err := tree.EnsureDir(ctx, root, volume.Directory, parentMode)
	if err != nil {
		return fmt.Errorf("making directory %s: %w", volume.Directory, err)
	}
	return tree.Within(ctx, root, volume.Directory, func(dir tree.Dir) error {
		return b.ensureAccess(ctx, dir)
	})
}

// ensureAccess sets the owner and mode of the spec on a directory.
func (b *nfsBackend) ensureAccess(ctx context.Context, dir tree.Dir) error {
	info, err := dir.Stat(ctx)
	if err != nil || info.Access == b.spec.access {
		return err
	}
	err = dir.SetAccess(ctx, b.spec.access)
	if tree.IsPermission(err) {
		return backend.Unavailable.Errorf("the server lets %s/%s make directories, but not give them to user %d, group %d (they are user %d's): "+
			"export the share with no_root_squash, or set nfs.access.uid and gid to what the server makes of root: %w",
			b.spec.server, b.spec.path, b.spec.access.UID, b.spec.access.GID, info.UID, err)
	}
	return err
}

func (b *nfsBackend) volume(recorded record, request backend.Request) *backend.Volume {
	return &backend.Volume{
		Handle: recorded.ID,
		Attributes: map[string]string{
			stowagev1alpha1.ServerAttribute:       b.spec.server,
			stowagev1alpha1.PathAttribute:         b.spec.path + "/" + recorded.Directory,
			stowagev1alpha1.MountOptionsAttribute: b.spec.nodeOptions(),
		},
		Capacity: request.Capacity,
	}
}
