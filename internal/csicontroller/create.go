package csicontroller

import (
	"context"
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

// CreateVolume implements csispec.ControllerServer. A volume that the backend has already is compared with
// the call by its owner record.
func (s *Service) CreateVolume(ctx context.Context, req *csispec.CreateVolumeRequest) (*csispec.CreateVolumeResponse, error) {
	if err := checkName(req.GetName()); err != nil {
		return nil, err
	}
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if !b.object.DeletionTimestamp.IsZero() {
		return nil, precondition("StorageBackend %s is being deleted", s.Name)
	}
	request, err := s.requestOf(b, req)
	if err != nil {
		return nil, err
	}
	end, err := s.calls.begin(request.ID)
	if err != nil {
		return nil, err
	}
	defer end()
	if request.Source, err = sourceOf(ctx, b, req.GetVolumeContentSource()); err != nil {
		return nil, err
	}
	made, err := create(ctx, b, request, req.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	return &csispec.CreateVolumeResponse{Volume: &csispec.Volume{
		VolumeId: made.Handle, CapacityBytes: made.Capacity.Value(), VolumeContext: s.attributes(made),
		ContentSource: req.GetVolumeContentSource(), AccessibleTopology: accessible(made),
	}}, nil
}

// create makes a volume, or finds it made. One that is larger than the limit is removed again, if this call
// made it.
func create(ctx context.Context, b storage, request backend.Request, limits *csispec.CapacityRange) (made *backend.Volume, err error) {
	if err := b.Capabilities().Check(request); err != nil {
		return nil, err
	}
	isNew := false
	if limits.GetLimitBytes() > 0 {
		_, err := b.existing(ctx, request.ID)
		if isNew = errors.Is(err, backend.NotFound); err != nil && !isNew {
			return nil, err
		}
	}
	err = finish(ctx, func(ctx context.Context) (err error) {
		made, err = b.Provision(ctx, request)
		return err
	})
	switch {
	case errors.Is(err, backend.Invalid) && request.Source != nil && request.Source.IsUnknown():
		return nil, backend.NotFound.Errorf("the source isn't there, and no copy of it was begun: %w", err)
	case err != nil || fits(limits, made.Capacity.Value()):
		return made, err
	case !isNew:
		return nil, status.Errorf(codes.AlreadyExists, "volume %s has %s, which isn't within capacity_range", made.Handle, made.Capacity.String())
	}
	// The limit is part of what the owner record identifies: no call with another one has this volume.
	if err := finish(ctx, func(ctx context.Context) error { return b.Delete(ctx, made.Handle) }); err != nil {
		return nil, err
	}
	return nil, status.Errorf(codes.OutOfRange, "capacity_range: the volume would have %s, which is beyond the limit", made.Capacity.String())
}

// sourceOf is the volume, or the snapshot, that a new volume is to be a copy of. Both must have been made by
// calls. Of one that is gone an earlier call may have begun the copy.
func sourceOf(ctx context.Context, b storage, req *csispec.VolumeContentSource) (*backend.Source, error) {
	switch {
	case req == nil:
		return nil, nil //nolint:nilnil // the volume begins empty
	case req.GetSnapshot() != nil:
		return snapshotSource(ctx, b, req.GetSnapshot().GetSnapshotId())
	}
	id := req.GetVolume().GetVolumeId()
	copied, err := b.existing(ctx, id)
	if named.IsVolume(id) && errors.Is(err, backend.NotFound) {
		return &backend.Source{}, nil
	}
	return &backend.Source{ID: copied.ID, Claim: copied.Claim}, err
}

// snapshotSource finds a snapshot among those of this backend, for this cluster: a restore alone doesn't check that. One of a
// claim's volume belongs to the claim's namespace, and a caller that could make it may restore it.
func snapshotSource(ctx context.Context, b storage, handle string) (*backend.Source, error) {
	if !named.IsSnapshot(handle) {
		return nil, notOurs(handle)
	}
	held, err := b.find(ctx, func(held backend.Held) bool { return held.ID == handle && isSnapshot(held) })
	if errors.Is(err, backend.NotFound) {
		return &backend.Source{}, nil
	}
	return &backend.Source{Snapshot: held.ID, Namespace: held.Claim.Namespace}, err
}

// fits reports whether a capacity is what was asked for.
func fits(req *csispec.CapacityRange, bytes int64) bool {
	return bytes >= req.GetRequiredBytes() && (req.GetLimitBytes() == 0 || bytes <= req.GetLimitBytes())
}
