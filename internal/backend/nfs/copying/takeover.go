package copying

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// earlierSuffix ends the name of the directory of an attempt that was taken over, and removedSuffix of one that is
	// being removed.
	earlierSuffix, removedSuffix = ".earlier", ".removed"
	// maxEarlier is how many attempts are taken over: each costs a lookup for each file.
	maxEarlier = 4
)

// begin takes over what other attempts left, and makes the directory of this one.
func (a *attempt) begin(ctx context.Context, root tree.Dir, of Copy) error {
	earlier, err := takeOver(ctx, root, of)
	if err != nil {
		return err
	}
	name := nameFor(of)
	if err := tree.EnsureDir(ctx, root, of.Aside+"/"+name, share.OwnerOnly); err != nil {
		return fmt.Errorf("making a directory for the copy: %w", err)
	}
	a.name, a.earlier = name, earlier
	return nil
}

// nameFor is a new name for the directory of an attempt. Only those of the same source begin alike.
func nameFor(of Copy) string { return sourceOf(of) + "-" + rand.Text() }

func sourceOf(of Copy) string {
	sum := sha256.Sum256([]byte(of.From))
	return hex.EncodeToString(sum[:8])
}

// takeOver renames the directories of other attempts at a copy, and returns the new names. An attempt that is still at
// work can't complete any more: its directory has another name. Those of another source, and those beyond the limit, are
// removed.
func takeOver(ctx context.Context, root tree.Dir, of Copy) (earlier []string, err error) {
	err = tree.Within(ctx, root, of.Aside, func(aside tree.Dir) error {
		names, err := namesIn(ctx, aside)
		if err != nil {
			return err
		}
		for _, name := range names {
			next, err := renamed(ctx, aside, name, len(earlier) < maxEarlier, of)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				// Another process renamed it.
			case err != nil:
				return err
			case strings.HasSuffix(next, removedSuffix):
				if err := remove(ctx, aside, next, of); err != nil {
					return err
				}
			default:
				earlier = append(earlier, next)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return earlier, err
}

// renamed gives the directory of another attempt the name of one that is taken over or, where that can't be, removed. A
// name that was given stays.
func renamed(ctx context.Context, aside tree.Dir, name string, room bool, of Copy) (string, error) {
	suffix := removedSuffix
	if room && strings.HasPrefix(name, sourceOf(of)+"-") && !strings.HasSuffix(name, removedSuffix) {
		suffix = earlierSuffix
	}
	if strings.HasSuffix(name, suffix) {
		return name, nil
	}
	next := nameFor(of) + suffix
	return next, aside.Rename(ctx, name, aside, next)
}

func remove(ctx context.Context, aside tree.Dir, name string, of Copy) error {
	err := tree.RemoveTree(ctx, aside, name, of.Until)
	if errors.Is(err, syscall.ENOTDIR) {
		err = aside.RemoveFile(ctx, name)
	}
	return err
}

func namesIn(ctx context.Context, dir tree.Dir) (names []string, err error) {
	for entry, err := range dir.List(ctx, tree.Cursor{}) {
		if err != nil {
			return nil, err
		}
		names = append(names, entry.Name)
	}
	return names, nil
}

// withEarlier opens the directories of the earlier attempts. Those that are gone have nothing to take over.
func (a *attempt) withEarlier(ctx context.Context, root tree.Dir, of Copy, do func([]tree.Dir) error) error {
	return tree.Within(ctx, root, of.Aside, func(aside tree.Dir) error {
		var earlier []tree.Dir
		defer func() {
			for _, one := range earlier {
				_ = one.Close()
			}
		}()
		for _, name := range a.earlier {
			one, err := aside.Open(ctx, name)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return err
			default:
				earlier = append(earlier, one)
			}
		}
		return do(earlier)
	})
}
