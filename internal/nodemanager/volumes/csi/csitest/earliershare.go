package csitest

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// EarlierShare is a volume of the nfs driver that an agent of the previous layout, whose folder is
// Root, has mounted. The volume type for nfs volumes had it.
type EarlierShare struct {
	// Root is the agent's folder.
	Root string
	// Mounter mounts directories of servers.
	Mounter nfs.Mounter
	// Spec is the volume, for a pod.
	Spec volumes.Spec
}

// Mount mounts the volume for the node, and for a pod, which has it at dir.
func (e EarlierShare) Mount(ctx context.Context, dir string) error {
	share, err := nfs.ShareOf(e.Spec)
	if err != nil {
		return err
	}
	shared, seen := filepath.Join(e.Root, "nfs", share.Key()), filepath.Join(dir, "mount")
	for _, each := range []string{filepath.Join(dir, "staged-"+share.Key()), shared, seen} {
		err = errors.Join(err, os.MkdirAll(each, 0o750))
	}
	table, err2 := e.Mounter.Table()
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if !table.IsMountPoint(shared) {
		if err := e.Mounter.NFS(ctx, share.NFS, shared); err != nil {
			return err
		}
	}
	return e.Mounter.BindMount(ctx, shared, seen, e.Spec.Access)
}
