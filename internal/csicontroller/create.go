package csicontroller

import (
	"context"
	"errors"
	"fmt"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

// CreateVolume implements csispec.ControllerServer. A volume that the backend has already is compared with
// the call by its owner record. The volume is marked as kept, because no object has to refer to it.
func (s *Service) CreateVolume(ctx context.Context, req *csispec.CreateVolumeRequest) (*csispec.CreateVolumeResponse, error) {
	if err := checkName(req.GetName()); err != nil {
		return nil, err
	}
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	request, err := s.requestOf(b, req)
	if err != nil {
		return nil, err
	}
	if !b.object.DeletionTimestamp.IsZero() {
		return nil, precondition("StorageBackend %s is being deleted", s.Name)
	}
	end, err := s.calls.begin(request.ID)
	if err != nil {
		return nil, err
	}
	defer end()
	if request.Source, err = sourceOf(ctx, b, req.GetVolumeContentSource()); err != nil {
		return nil, err
	}
	made, err := create(ctx, b, request)
	if err != nil {
		return nil, err
	}
	if has := made.Capacity; !fits(req.GetCapacityRange(), has.Value()) {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s has %s, which isn't within capacity_range: ask for it, or delete the volume", made.Handle, has.String())
	}
	return &csispec.CreateVolumeResponse{Volume: &csispec.Volume{
		VolumeId: made.Handle, CapacityBytes: made.Capacity.Value(), VolumeContext: s.attributes(made),
		ContentSource: req.GetVolumeContentSource(), AccessibleTopology: accessible(made),
	}}, nil
}

// create makes a volume, and marks it as kept. After a crash between the two, a repeat of the call marks it.
func create(ctx context.Context, b storage, request backend.Request) (made *backend.Volume, err error) {
	if err := b.Capabilities().Check(request); err != nil {
		return nil, err
	}
	err = finish(ctx, func(ctx context.Context) (err error) {
		made, err = b.Provision(ctx, request)
		return err
	})
	if err != nil {
		return nil, withoutSource(ctx, b, request, err)
	}
	err = finish(ctx, func(ctx context.Context) error {
		_, err := backend.Retain(ctx, b.Backend, made.Handle)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("recording that volume %s is kept: %w", made.Handle, err)
	}
	return made, nil
}

// sourceOf is the volume, or the snapshot, that a new volume is to be a copy of. Both must have been made by
// calls: those of a claim belong to its namespace.
func sourceOf(ctx context.Context, b storage, req *csispec.VolumeContentSource) (*backend.Source, error) {
	switch {
	case req == nil:
		return nil, nil //nolint:nilnil // the volume begins empty
	case req.GetSnapshot() != nil:
		handle := req.GetSnapshot().GetSnapshotId()
		if !named.IsSnapshot(handle) {
			return nil, notOurs(handle)
		}
		return &backend.Source{Snapshot: handle}, nil
	default:
		copied, err := b.existing(ctx, req.GetVolume().GetVolumeId())
		return &backend.Source{ID: copied.ID, Claim: copied.Claim}, err
	}
}

// withoutSource makes the refusal of a request an error of kind NotFound, where its snapshot is gone.
func withoutSource(ctx context.Context, b storage, request backend.Request, refusal error) error {
	if request.Source == nil || request.Source.Snapshot == "" || !errors.Is(refusal, backend.Invalid) {
		return refusal
	}
	snapshotter, can := backend.As[backend.Snapshotter](b.Backend)
	if !can {
		return refusal
	}
	if _, err := snapshotter.FindSnapshot(ctx, request.Source.Snapshot); errors.Is(err, backend.NotFound) {
		return err
	}
	return refusal
}

// fits reports whether a capacity is what was asked for.
func fits(req *csispec.CapacityRange, bytes int64) bool {
	return bytes >= req.GetRequiredBytes() && (req.GetLimitBytes() == 0 || bytes <= req.GetLimitBytes())
}
