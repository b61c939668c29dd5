package mounttest

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
)

// Servers does what remote.Calls does, and starts no processes for it: its NFS servers are
// directories of this machine, which always answer. What a server has at a path lies at
// Root, then the server's name, then the path. It needs root.
type Servers struct {
	mount.Kernel
	Root string
}

// PathOf is where on this machine a path of a server is.
func (s Servers) PathOf(server, path string) string { return filepath.Join(s.Root, server, path) }

// NFS mounts a directory of a server. One that the server doesn't have is ENOENT.
func (s Servers) NFS(ctx context.Context, share remote.NFS, target string) error {
	access := mount.ReadWrite
	if share.Attributes&unix.MOUNT_ATTR_RDONLY != 0 {
		access = mount.ReadOnly
	}
	return s.BindMount(ctx, s.PathOf(share.Server, share.Path), target, access)
}

// BindMount makes the directory source visible at target.
func (s Servers) BindMount(_ context.Context, source, target string, access mount.Access) error {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	return s.Bind(from, target, access)
}

// Unbind unmounts everything at path or below it.
func (s Servers) Unbind(_ context.Context, path string) error {
	return mount.UnmountBelow(s.Kernel, path)
}

// Unmount unmounts the mount at path. The kernel is done with it then.
func (s Servers) Unmount(_ context.Context, path string) (done <-chan struct{}, err error) {
	over := make(chan struct{})
	close(over)
	return over, s.Kernel.Unmount(path)
}

// MakeFolder makes a folder on the share that is mounted at base.
func (Servers) MakeFolder(ctx context.Context, base string, folder remote.Folder) error {
	return folder.Make(ctx, base)
}

// RemoveFolder removes a folder from the share that is mounted at base.
func (Servers) RemoveFolder(ctx context.Context, base string, folder remote.Folder) error {
	return folder.Remove(ctx, base)
}
