package nfs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	trialPrefix = "probe-"
	// leftAfter is the age from which a temporary entry counts as left by a crash.
	leftAfter = time.Hour
	// maxSwept is how many temporary entries a probe reads. The next probe reads further, because
	// this one removes some.
	maxSwept = 1000
)

// Probe tries on the share what a volume needs.
func (b *nfsBackend) Probe(ctx context.Context) error {
	_, err := onShare(ctx, b, "trying the share", func(ctx context.Context, root tree.Dir) (any, error) {
		return nil, b.probe(ctx, root)
	})
	if err != nil && backend.KindOf(err) == "" {
		// Whether the trial took effect or not, no volume can be made now.
		return backend.Unavailable.Errorf("%w", err)
	}
	return err
}

// probe makes a directory as for a volume, and removes it.
func (b *nfsBackend) probe(ctx context.Context, root tree.Dir) error {
	if err := ensureOurs(ctx, root); err != nil {
		return err
	}
	return tree.Within(ctx, root, temporary, func(dir tree.Dir) error {
		now, err := b.try(ctx, dir)
		if err != nil {
			return err
		}
		return sweep(ctx, dir, now.Add(-leftAfter))
	})
}

// try returns the server's time.
func (b *nfsBackend) try(ctx context.Context, dir tree.Dir) (now time.Time, err error) {
	name := fmt.Sprintf("%s%x", trialPrefix, rand.Uint64())
	if err := dir.MakeDir(ctx, name, share.OwnerOnly); err != nil {
		return now, err
	}
	made, err := dir.Open(ctx, name)
	if err != nil {
		return now, err
	}
	defer made.Close()
	err = b.ensureAccess(ctx, made)
	if err == nil {
		var info tree.Info
		info, err = made.Stat(ctx)
		now = info.Modified
		if err == nil && info.Access != b.spec.access {
			err = backend.Unavailable.Errorf("the server gives directories to user %d, group %d with mode %#o, whatever nfs.access asks for: "+
				"export the share with no_root_squash, or set nfs.access to this", info.UID, info.GID, info.Mode)
		}
	}
	if removal := dir.RemoveDir(ctx, name); err == nil {
		err = removal
	}
	return now, err
}

// sweep removes temporary entries that crashes left.
func sweep(ctx context.Context, dir tree.Dir, before time.Time) error {
	read := 0
	for entry, err := range dir.List(ctx, tree.Cursor{}) {
		if err != nil {
			return err
		}
		read++
		if read > maxSwept {
			return nil
		}
		info, err := dir.Lookup(ctx, entry.Name)
		if err != nil || !info.Modified.Before(before) {
			continue
		}
		if info.Type == tree.Directory && strings.HasPrefix(entry.Name, trialPrefix) {
			err = dir.RemoveDir(ctx, entry.Name)
		} else if info.Type == tree.File {
			err = dir.RemoveFile(ctx, entry.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
