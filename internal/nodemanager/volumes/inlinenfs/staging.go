package inlinenfs

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
)

// inlineHandle is what kubelets name the volumes that pods name themselves. None of a
// claim has such a handle: those of the nfs backend name what they are.
var inlineHandle = regexp.MustCompile(`^csi-[0-9a-f]{64}$`)

// Backends finds the StorageBackend of a name.
type Backends func(ctx context.Context, name string) (*stowagev1alpha1.StorageBackend, error)

// Staging is what the kubelet's calls do to volumes of the nfs driver, also to those that
// pods name themselves: such a folder is mounted at the kubelet's path itself, and
// recorded by the kubelet's handle. Only while a folder is made or removed is its share
// mounted as a whole, in a folder of the agent's own.
type Staging struct {
	*nfs.Staging
	plugin   Plugin
	backends Backends
}

// NewStaging returns what serves the kubelet's calls. It has the plugin's records.
func NewStaging(shares *nfs.Staging, plugin Plugin, backends Backends) Staging {
	return Staging{Staging: shares, plugin: plugin, backends: backends}
}

// IsInline tells whether a handle is of a volume that a pod named itself.
func (Staging) IsInline(handle string) bool { return inlineHandle.MatchString(handle) }

// PublishInline makes a pod's own folder, and makes it visible at target.
func (s Staging) PublishInline(ctx context.Context, spec volumes.Spec, handle, target string) error {
	if !s.IsInline(handle) {
		return fmt.Errorf("%q is no handle of a pod's own volume: %w", handle, volumes.ErrInvalid)
	}
	volume, err := s.ensureRecord(ctx, spec, handle)
	if err != nil {
		return err
	}
	// One that is there was made before, and its server isn't asked for it again.
	if missing := s.Check(ctx, handle, target); missing != nil {
		if err := s.plugin.ensureFolder(ctx, handle, volume); err != nil {
			return err
		}
	}
	return s.Stage(ctx, volume.mountedBy(spec), target)
}

// ensureRecord finds what is recorded of a volume, or records what the backend says that
// the pod names.
func (s Staging) ensureRecord(ctx context.Context, spec volumes.Spec, handle string) (*record, error) {
	found, err := s.plugin.records.find(handle)
	if err != nil || found != nil {
		return found, err
	}
	name, err := BackendNamedBy(spec.Volume.CSI)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", volumes.ErrInvalid, err)
	}
	spec.Backend, err = s.backends(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := CheckAllows(spec.Backend); err != nil {
		return nil, err
	}
	return s.plugin.ensureRecord(handle, spec)
}

// UnpublishInline takes a pod's own folder away and removes it, whatever became of the
// backend. The record goes last.
func (s Staging) UnpublishInline(ctx context.Context, handle, target string) error {
	if !s.IsInline(handle) {
		return fmt.Errorf("%q is no handle of a pod's own volume: %w", handle, volumes.ErrInvalid)
	}
	if err := s.Unstage(ctx, handle, target); err != nil {
		return err
	}
	if err := volumes.RemovePoint(target); err != nil {
		return err
	}
	elsewhere := s.Check(ctx, handle, "")
	if elsewhere == nil {
		return fmt.Errorf("removing the folder of volume %s, which is mounted at another path: %w", handle, volumes.ErrInUse)
	}
	if !errors.Is(elsewhere, volumes.ErrNotFound) {
		return elsewhere
	}
	return s.plugin.removeRecorded(ctx, handle)
}
