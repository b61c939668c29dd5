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

// inlineHandle is the handle that a kubelet gives to inline volumes. No claim's volume has such a
// handle: those of the nfs backend have other forms.
var inlineHandle = regexp.MustCompile(`^csi-[0-9a-f]{64}$`)

// Backends finds the StorageBackend of a name.
type Backends func(ctx context.Context, name string) (*stowagev1alpha1.StorageBackend, error)

// Staging serves the kubelet's calls for volumes of the nfs driver, inline ones too. An inline
// folder is mounted at the kubelet's path itself, and recorded by the kubelet's handle. Its whole
// share is mounted only while the folder is made or removed, in a folder of the agent's own.
type Staging struct {
	*nfs.Staging
	plugin   Plugin
	backends Backends
}

// NewStaging returns a Staging with the plugin's records.
func NewStaging(shares *nfs.Staging, plugin Plugin, backends Backends) Staging {
	return Staging{Staging: shares, plugin: plugin, backends: backends}
}

// IsInline reports whether a handle is of an inline volume.
func (Staging) IsInline(handle string) bool { return inlineHandle.MatchString(handle) }

// PublishInline makes a pod's own folder, and mounts it at target.
func (s Staging) PublishInline(ctx context.Context, spec volumes.Spec, handle, target string) error {
	if !s.IsInline(handle) {
		return fmt.Errorf("%q is no handle of an inline volume: %w", handle, volumes.ErrInvalid)
	}
	volume, err := s.ensureRecord(ctx, spec, handle)
	if err != nil {
		return err
	}
	// A mounted one was made before: its server isn't called again.
	if missing := s.Check(ctx, handle, target); missing != nil {
		if err := s.plugin.ensureFolder(ctx, handle, volume); err != nil {
			return err
		}
	}
	return s.Stage(ctx, volume.mountedBy(spec), target)
}

// ensureRecord finds the record of a volume, or makes it from the backend that the pod names.
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

// UnpublishInline unmounts and removes a pod's own folder, whatever became of the backend. The
// record goes last.
func (s Staging) UnpublishInline(ctx context.Context, handle, target string) error {
	if !s.IsInline(handle) {
		return fmt.Errorf("%q is no handle of an inline volume: %w", handle, volumes.ErrInvalid)
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
