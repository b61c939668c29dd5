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

	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// earlierSuffix ends the name of the directory of an attempt that was taken over.
	earlierSuffix = ".earlier"
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
			if len(earlier) == maxEarlier || !strings.HasPrefix(name, sourceOf(of)+"-") {
				if err := tree.RemoveTree(ctx, aside, name, of.Until); err != nil {
					return err
				}
				continue
			}
			if !strings.HasSuffix(name, earlierSuffix) {
				next := nameFor(of) + earlierSuffix
				if err := aside.Rename(ctx, name, aside, next); err != nil {
					return err
				}
				name = next
			}
			earlier = append(earlier, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		// There was none, or another process removed it: then there is nothing to take over.
		return nil, nil
	}
	return earlier, err
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
