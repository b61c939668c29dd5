package remote

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

// ErrNoNFSClient says that this machine can't mount NFS at all.
var ErrNoNFSClient = errors.New("this node's kernel has no NFS client: load its module nfs (modprobe nfs), or keep such pods off the node")

// NFS is a directory of an NFS server, and how it is mounted.
type NFS struct {
	// Server is its name, which the mount table shows, and Address where it is:
	// the kernel doesn't look names up.
	Server  string
	Address netip.Addr
	// Path on the server.
	Path string
	// Version of the protocol, such as 3 or 4.1.
	Version string
	// Settings are options of the file system.
	Settings []mount.Setting
	// Attributes are those of the mount: MOUNT_ATTR_NOEXEC and its like.
	Attributes int
}

// Source is how the mount table names the directory.
func (n NFS) Source() string {
	if strings.Contains(n.Server, ":") {
		return "[" + n.Server + "]:" + n.Path
	}
	return n.Server + ":" + n.Path
}

// mount mounts the directory at target. It may take for ever.
func (n NFS) mount(target string) error {
	settings := append([]mount.Setting{
		{Key: "source", Value: n.Source()}, {Key: "addr", Value: n.Address.String()}, {Key: "vers", Value: n.Version},
	}, n.Settings...)
	tree, err := mount.Create("nfs", settings, n.Attributes)
	if err != nil {
		return fmt.Errorf("mounting %s with version %s: %w", n.Source(), n.Version, err)
	}
	defer unix.Close(tree)
	return mount.Attach(tree, target)
}
