package nfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stowage-dev/stowage/internal/keyed"
)

// shareTimeout is how long a volume waits for another operation on its share.
const shareTimeout = 10 * time.Second

// errBusy: another mount or unmount of the share still runs.
var errBusy = errors.New("an earlier mount or unmount of the same share isn't over: does its server answer?")

// stages is the staging paths of shares, with a lock for each.
type stages struct {
	folder string
	locks  keyed.Locks
}

func newStages(folder string) *stages { return &stages{folder: folder} }

// path is the staging path of a share.
func (s *stages) path(key string) string { return filepath.Join(s.folder, key) }

// has reports whether a share has a mount point. It reads names only: a server may hang.
func (s *stages) has(key string) (bool, error) {
	folder, err := os.Open(s.folder)
	if err != nil {
		return false, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	return slices.Contains(names, key), err
}

// acquire waits, at most for shareTimeout, for the lock of a share.
func (s *stages) acquire(ctx context.Context, key string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	release, err = s.locks.Acquire(ctx, key)
	if err != nil {
		return nil, errBusy
	}
	return release, nil
}
