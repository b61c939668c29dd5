package nfs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
)

// Mounter mounts and unmounts directories of servers that may hang. remote.Calls is the real one.
type Mounter interface {
	NFS(ctx context.Context, share remote.NFS, target string) error
	BindMount(ctx context.Context, source, target string, access mount.Access) error
	Unbind(ctx context.Context, path string) error
	Unmount(ctx context.Context, path string) (done <-chan struct{}, err error)
	Table() (mount.Table, error)
}

// mountShare mounts a share with the best version that kernel and server both support.
func mountShare(ctx context.Context, mounter Mounter, share *Share, address netip.Addr, stage string) error {
	var refused error
	for _, version := range versionsFor(share.Version) {
		attempt := share.NFS
		attempt.Address, attempt.Version = address, version
		err := mounter.NFS(ctx, attempt, stage)
		if err == nil {
			return nil
		}
		if refused == nil || errors.Is(refused, unix.EPROTONOSUPPORT) {
			refused = explain(share, version, err)
		}
		if !mayOlderSucceed(err) {
			break
		}
	}
	return refused
}

// versionsFor returns the versions to try, the best first.
func versionsFor(asked string) []string {
	switch asked {
	case "":
		return []string{"4.2", "4.1", "4.0", "3"}
	case "4":
		return []string{"4.2", "4.1", "4.0"}
	default:
		return []string{asked}
	}
}

// mayOlderSucceed reports whether an older version may succeed: the newer one isn't supported, or
// has other paths for the server's directories.
func mayOlderSucceed(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM)
}

// explain adds to an error of the kernel what to do about it.
func explain(share *Share, version string, err error) error {
	advice := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, remote.ErrNoNFSClient):
		return err
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		advice = "the server has no such directory, or doesn't export it"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		advice = "the server refuses this node: let its export list the node's address"
	case errors.Is(err, unix.EPROTONOSUPPORT):
		advice = fmt.Sprintf("the server, or this node's kernel, doesn't speak version %s: set nfsVersion to one that both speak", version)
	case errors.Is(err, unix.EINVAL):
		advice = "the kernel doesn't take these mountOptions"
	case errors.Is(err, unix.ESTALE):
		advice = "the server has lost the directory that is mounted: end the pods of this node that use the volume, and start them again"
	case errors.Is(err, unix.ECONNREFUSED) && version == "3":
		advice = "no NFS server runs there, or (version 3 needs it for locks) no rpcbind on this node: run rpcbind and rpc.statd, " +
			"or use mount option nolock, or nfsVersion 4.1"
	case errors.Is(err, unix.ECONNREFUSED):
		advice = "no NFS server runs there"
	case errors.Is(err, remote.ErrSilent), errors.Is(err, unix.ETIMEDOUT), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EIO):
		advice = "the server doesn't answer: is it up, and reachable from this node?"
	}
	if advice == "" {
		return fmt.Errorf("mounting %s: %w", share.Source(), err)
	}
	return fmt.Errorf("mounting %s: %s: %w", share.Source(), advice, err)
}
