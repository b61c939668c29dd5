package mounttest

import (
	"context"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Servers is a mount.Apart whose NFS servers are directories of this machine: what a
// server has at a path lies at Root, then the server's name, then the path. It needs Main,
// and root.
type Servers struct {
	mount.Apart
	Root string
}

// NFS mounts a directory of a server. One that the server doesn't have is ENOENT.
func (s Servers) NFS(_ context.Context, share mount.NFS, target string) error {
	source, err := os.Open(s.PathOf(share.Server, share.Path))
	if err != nil {
		return err
	}
	defer source.Close()
	return mount.Kernel{}.Bind(source, target, mount.ReadWrite)
}

// PathOf is where on this machine a path of a server is.
func (s Servers) PathOf(server, path string) string { return filepath.Join(s.Root, server, path) }
