package nfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// turnPatience is how long a volume waits for another one's turn at its share.
const turnPatience = 10 * time.Second

// errTurn says that something else is still at work on a share.
var errTurn = errors.New("an earlier mount or unmount of the same share isn't over: does its server answer?")

// stages is where shares are mounted for the whole node, and whose turn it is at
// each.
type stages struct {
	folder string
	turns  volumes.Turns
}

func newStages(folder string) *stages { return &stages{folder: folder} }

// path is where a share is mounted for the whole node.
func (s *stages) path(key string) string { return filepath.Join(s.folder, key) }

// has says whether a share has a mount point. It looks at names only, as a server may hang
// behind one.
func (s *stages) has(key string) (bool, error) {
	folder, err := os.Open(s.folder)
	if err != nil {
		return false, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	return slices.Contains(names, key), err
}

// acquire waits, for a while, for the turn at a share.
func (s *stages) acquire(ctx context.Context, key string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	release, err = s.turns.Acquire(ctx, key)
	if err != nil {
		return nil, errTurn
	}
	return release, nil
}
