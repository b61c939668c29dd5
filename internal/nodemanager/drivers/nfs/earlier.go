package nfs

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// earlierVolumes is where pods have volumes that agents of the previous layout mounted.
const earlierVolumes = "volumes/kubernetes.io~nfs/"

// earlier is the folder in which agents of the previous layout mounted volumes of the driver, for
// all pods of the node. Each is <folder>/<key of the share>. The volume type for nfs volumes still
// does so with its own. "": there is none.
type earlier struct {
	shares *Shares
	folder string
}

// bind makes the share visible at a staging path as well, if an agent of the previous layout
// mounted it and pods have it. A second mount of its own would have other caches and other locks
// than theirs. It reports whether the share was there.
func (e earlier) bind(ctx context.Context, share *Share, staging string) (bool, error) {
	if e.folder == "" {
		return false, nil
	}
	at := filepath.Join(e.folder, share.earlierKey())
	release, err := e.shares.Acquire(ctx, at)
	if err != nil {
		return false, err
	}
	defer release()
	table, err := e.shares.Table()
	if err != nil {
		return false, err
	}
	point, mounted := table.At(at)
	if !mounted || !e.isInPod(usersOf(table, point)) {
		return false, nil
	}
	return true, e.shares.Bind(ctx, share, at, staging)
}

// isInPod reports whether one of the mounts is a pod's. What no pod has may be anything.
func (e earlier) isInPod(users []mount.Point) bool {
	pods := filepath.Join(filepath.Dir(e.folder), "pods") + "/"
	return slices.ContainsFunc(users, func(user mount.Point) bool { return strings.HasPrefix(user.Path, pods) })
}

// earlierKey is the key that the share had in the previous layout, in which the mount of a share
// for readers could be written.
func (s *Share) earlierKey() string {
	before := *s
	before.Attributes &^= unix.MOUNT_ATTR_RDONLY
	return before.Key()
}

// drop unmounts in the folder the share that is mounted at a staging path, too. With two, each
// would take the other for a user, and stay. Pods keep their mounts. It isn't the last mount, so it
// waits for no server.
func (e earlier) drop(ctx context.Context, staging string) error {
	if e.folder == "" {
		return nil
	}
	table, err := e.shares.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(staging)
	if !mounted {
		return nil
	}
	for _, point := range table.Below(e.folder) {
		if !isSame(point, staged) {
			continue
		}
		if err := e.dropOne(ctx, point); err != nil {
			return err
		}
	}
	return nil
}

func (e earlier) dropOne(ctx context.Context, point mount.Point) error {
	release, err := e.shares.Acquire(ctx, point.Path)
	if err != nil {
		return err
	}
	defer release()
	if err := e.shares.Unbind(ctx, point.Path); err != nil {
		return err
	}
	return volumes.RemoveEmptyDir(point.Path)
}
