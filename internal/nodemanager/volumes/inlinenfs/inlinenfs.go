// Package inlinenfs serves inline volumes of Stowage's nfs driver, which pods have without a claim.
// Each is a folder of the pod's own on the share of a StorageBackend, for the lifetime of the pod.
//
// The StorageBackend has the share, its mount options and the owner of the folder; the pod has no
// say in these. All of it is recorded on the node before the folder is made, and from then on the
// record decides. Pod and backend may be changed, or gone. A folder without a record isn't this
// node's, and is never removed.
//
// Driver makes the folder and mounts it, for a kubelet and for Plugin. remote.Calls makes all calls
// to servers: a server that hangs delays only its own volumes.
package inlinenfs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// shareDir is the folder of a volume's directory in which the folder is mounted.
	shareDir = "share"
	// recordedPrefix begins the name of the empty directory beside it that names the volume's
	// record.
	recordedPrefix = "recorded-"
)

// Plugin is the volume type, for nodes without a kubelet. Its zero value isn't usable: see New.
type Plugin struct{ driver Driver }

var _ volumes.Plugin = Plugin{}

// New returns the volume type.
func New(driver Driver) Plugin { return Plugin{driver} }

// Name implements volumes.Plugin. It differs from that of claims' volumes: Unpublish of this type
// removes data, and theirs never does.
func (Plugin) Name() string { return "stowage.dev/inline-nfs" }

// CanHandle implements volumes.Plugin.
func (Plugin) CanHandle(spec volumes.Spec) bool {
	source := spec.Volume.CSI
	return spec.PersistentVolume == nil && source != nil && source.Driver == stowagev1alpha1.NFSDriver
}

// Path implements volumes.Plugin.
func (p Plugin) Path(dir string) string { return p.driver.shares.Path(filepath.Join(dir, shareDir)) }

// IsPublished implements volumes.Plugin. It reads the mount table alone: a stat of the mount would
// wait for the server.
func (p Plugin) IsPublished(table mount.Table, _ volumes.Spec, dir string) (bool, error) {
	return table.IsMountPoint(p.Path(dir)), nil
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	id, err := idOf(spec)
	if err != nil {
		return err
	}
	// First, so that Unpublish finds what a crash leaves of the rest.
	for _, each := range []string{recordedPrefix + id, shareDir} {
		if err := os.MkdirAll(filepath.Join(dir, each), dirMode); err != nil {
			return fmt.Errorf("naming the volume's record: %w", err)
		}
	}
	return p.driver.publish(ctx, spec, id, p.Path(dir))
}

// Unpublish implements volumes.Plugin. The record goes after the folder, and dir, which
// leads to it, last.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	if there, err := volumes.IsThere(dir); err != nil || !there {
		return err
	}
	err := volumes.RemoveRecorded(dir, recordedPrefix, func(id string) error { return p.unpublish(ctx, id, dir) })
	if err != nil {
		return err
	}
	if err := volumes.RemoveEmptyDir(filepath.Join(dir, shareDir)); err != nil {
		return err
	}
	return volumes.RemoveEmptyDir(dir)
}

// unpublish unmounts a volume, and removes its folder. An agent of the previous layout bound the
// folder from where package nfs mounted it. The driver unmounts that first, and package nfs removes
// its names.
func (p Plugin) unpublish(ctx context.Context, id, dir string) error {
	if err := p.driver.unmount(ctx, id, p.Path(dir)); err != nil {
		return err
	}
	if err := p.driver.shares.Unpublish(ctx, filepath.Join(dir, shareDir)); err != nil {
		return err
	}
	return p.driver.removeRecorded(ctx, id)
}
