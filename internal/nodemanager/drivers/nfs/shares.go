package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// MountTimeout is how long a server may take until a volume is mounted.
	MountTimeout = 30 * time.Second
	// shareTimeout is how long a call waits for another one at the same staging path.
	shareTimeout = 10 * time.Second
	// mountPointMode is that of directories which something is mounted on.
	mountPointMode = 0o750
)

// ErrBusy says that another mount or unmount of the share still runs.
var ErrBusy = errors.New("an earlier mount or unmount of the same share isn't over: does its server answer?")

// Shares mounts directories of servers at staging paths, and binds them for pods. A path has one
// call at a time. Between calls, the mount table is the only state. Driver uses Shares, and so
// does the volume type for nfs volumes.
type Shares struct {
	// Resolve finds the address of a server. NewShares sets the system's resolver.
	Resolve Resolver
	mounter Mounter
	locks   keyed.Locks
}

// NewShares returns a Shares that mounts by the mounter.
func NewShares(mounter Mounter) *Shares { return &Shares{Resolve: lookUp, mounter: mounter} }

// Table returns what is mounted now.
func (s *Shares) Table() (mount.Table, error) { return s.mounter.Table() }

// Acquire waits for the lock of a staging path, but not for long.
func (s *Shares) Acquire(ctx context.Context, staging string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	release, err = s.locks.Acquire(ctx, staging)
	if err != nil {
		return nil, ErrBusy
	}
	return release, nil
}

// Mount mounts a share at a staging path, unless it is mounted. It makes the mount point. The
// caller has the path's lock.
func (s *Shares) Mount(ctx context.Context, share *Share, staging string) error {
	table, err := s.mounter.Table()
	if err != nil || table.IsMountPoint(staging) {
		return err
	}
	if err := makeMountPoint(staging); err != nil {
		return err
	}
	address, err := s.Resolve(ctx, share.Server)
	if err != nil {
		return err
	}
	return mountShare(ctx, s.mounter, share, address, staging)
}

// Bind bind-mounts a staged share at target, unless something is mounted there.
func (s *Shares) Bind(ctx context.Context, share *Share, staging, target string) error {
	table, err := s.mounter.Table()
	if err != nil || table.IsMountPoint(target) {
		return err
	}
	if err := makeMountPoint(target); err != nil {
		return err
	}
	return explain(share, "", s.mounter.BindMount(ctx, staging, target, share.Access))
}

// makeMountPoint makes a directory. It never inspects what exists: a silent server's share may be
// mounted there.
func makeMountPoint(path string) error {
	if err := os.Mkdir(path, mountPointMode); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the mount point: %w", err)
	}
	return nil
}

// Unbind unmounts everything at path or below it, where the share stays mounted elsewhere. A mount
// that had to be detached without its server is remote.ErrDetached.
func (s *Shares) Unbind(ctx context.Context, path string) error { return s.mounter.Unbind(ctx, path) }

// Unstage unmounts a share from its staging path, and calls finish once nothing is mounted there.
// While the share is mounted elsewhere, it returns volumes.ErrInUse. A share that had to be
// detached without its server is remote.ErrDetached, after finish.
//
// The lock is held until the kernel is done with the share: until then, a new mount isn't safe.
func (s *Shares) Unstage(ctx context.Context, staging string, finish func() error) error {
	release, err := s.Acquire(ctx, staging)
	if err != nil {
		return err
	}
	done, err := s.unmount(ctx, staging)
	if err == nil || errors.Is(err, remote.ErrDetached) {
		err = errors.Join(err, finish())
	}
	if done == nil {
		release()
		return err
	}
	go func() {
		<-done
		release()
	}()
	return err
}

// unmount unmounts what is at a staging path. The channel is nil if nothing was done.
func (s *Shares) unmount(ctx context.Context, staging string) (done <-chan struct{}, err error) {
	table, err := s.mounter.Table()
	if err != nil {
		return nil, err
	}
	point, mounted := table.At(staging)
	switch {
	case !mounted:
		return nil, nil
	case len(usersOf(table, point)) > 0:
		return nil, volumes.ErrInUse
	default:
		return s.mounter.Unmount(ctx, staging)
	}
}

// usersOf returns where else the share is mounted that is mounted at a point, wholly or in part.
// Mounts of one server can share their device: their sources differ.
func usersOf(table mount.Table, at mount.Point) []mount.Point {
	var users []mount.Point
	for _, point := range table.Shows(at.Device, at.Root) {
		if point.Source == at.Source && point.Path != at.Path {
			users = append(users, point)
		}
	}
	return users
}

// isSame reports whether two mounts are of the same directory of the same server.
func isSame(one, other mount.Point) bool {
	return one.Device == other.Device && one.Root == other.Root && one.Source == other.Source
}
