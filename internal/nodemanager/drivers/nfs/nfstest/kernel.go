// Package nfstest mounts directories of NFS servers in memory, for tests that need neither root
// nor a server.
package nfstest

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
)

// Kernel is an nfs.Mounter in memory. See NewKernel.
type Kernel struct {
	mu    sync.Mutex
	table mount.Table
	// Refuse is the answer to a version of NFS, and Tried are the versions of all mounts.
	Refuse map[string]error
	Tried  []string
	// Unmounting is how an unmount ends, and Done is closed when the kernel is done with it.
	Unmounting error
	Done       chan struct{}
}

var _ nfs.Mounter = &Kernel{}

// NewKernel returns a Kernel with nothing mounted, which is done with unmounts at once.
func NewKernel() *Kernel {
	done := make(chan struct{})
	close(done)
	return &Kernel{Done: done}
}

// Shares returns a new agent's Shares. They mount by the kernel, and all servers have one address.
func (k *Kernel) Shares() *nfs.Shares {
	shares := nfs.NewShares(k)
	shares.Resolve = func(context.Context, string) (netip.Addr, error) { return netip.MustParseAddr("192.0.2.1"), nil }
	return shares
}

// NFS implements nfs.Mounter.
func (k *Kernel) NFS(_ context.Context, share remote.NFS, target string) error {
	k.Tried = append(k.Tried, share.Version)
	if err := k.Refuse[share.Version]; err != nil {
		return err
	}
	point := mount.Point{Device: "0:50", Root: "/", Source: share.Source(), Path: target}
	if share.Attributes&unix.MOUNT_ATTR_RDONLY != 0 {
		point.Access = mount.ReadOnly
	}
	k.Add(point)
	return nil
}

// BindMount implements nfs.Mounter.
func (k *Kernel) BindMount(_ context.Context, source, target string, access mount.Access) error {
	point, _ := k.Mounts().At(source)
	point.Path, point.Access = target, access
	k.Add(point)
	return nil
}

// Unbind implements nfs.Mounter.
func (k *Kernel) Unbind(_ context.Context, path string) error {
	k.Remove(path)
	return nil
}

// Unmount implements nfs.Mounter.
func (k *Kernel) Unmount(_ context.Context, path string) (<-chan struct{}, error) {
	if k.Unmounting == nil || errors.Is(k.Unmounting, remote.ErrDetached) {
		k.Remove(path)
	}
	return k.Done, k.Unmounting
}

// Table implements nfs.Mounter.
func (k *Kernel) Table() (mount.Table, error) { return k.Mounts(), nil }

// Mounts returns what is mounted now.
func (k *Kernel) Mounts() mount.Table {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.table)
}

// Add adds a mount.
func (k *Kernel) Add(point mount.Point) {
	k.mu.Lock()
	defer k.mu.Unlock()
	point.ID = len(k.table) + 2
	k.table = append(k.table, point)
}

// Remove removes all mounts at a path, and below it.
func (k *Kernel) Remove(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.table = slices.DeleteFunc(k.table, func(point mount.Point) bool { return strings.HasPrefix(point.Path, path) })
}

// Clear removes all mounts, as a reboot does.
func (k *Kernel) Clear() { k.Remove("/") }
