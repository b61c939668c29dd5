package nfs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	nfsshare "github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	trialPrefix = "probe-"
	// leftAfter is the age at which what lies aside was left there by a crash.
	leftAfter = time.Hour
	// maxSwept is how many entries a probe looks at there. What it removes makes room for
	// the next probe to look further.
	maxSwept = 1000
)

// Probe does, on the share, what a volume needs.
func (b *nfsBackend) Probe(ctx context.Context) error {
	_, err := nfsshare.Use(ctx, b.share, func(ctx context.Context, root tree.Dir) (any, error) {
		return nil, b.probe(ctx, root)
	})
	err = b.translate("trying the share", err)
	if err != nil && backend.KindOf(err) == "" {
		// Whatever became of the trial, no volume can be made now.
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

// sweep removes what crashes left aside.
func sweep(ctx context.Context, dir tree.Dir, before time.Time) error {
	looked := 0
	for entry, err := range dir.List(ctx, tree.Cursor{}) {
		if err != nil {
			return err
		}
		looked++
		if looked > maxSwept {
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
