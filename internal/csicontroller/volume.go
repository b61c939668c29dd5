package csicontroller

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

// ofVolume makes a call about a volume that another call made. No second one comes at the same time.
func (s *Service) ofVolume(ctx context.Context, id string, call func(b storage) error) error {
	switch {
	case id == "":
		return missing("volume_id")
	case !named.IsVolume(id):
		return notOurs(id)
	}
	return s.alone(ctx, id, call)
}

// DeleteVolume implements csispec.ControllerServer.
func (s *Service) DeleteVolume(ctx context.Context, req *csispec.DeleteVolumeRequest) (*csispec.DeleteVolumeResponse, error) {
	id := req.GetVolumeId()
	if id == "" {
		return nil, missing("volume_id")
	}
	response := &csispec.DeleteVolumeResponse{}
	if may, err := checkRemovable(id, named.IsVolume(id)); !may {
		return response, err
	}
	return response, s.ofVolume(ctx, id, func(b storage) error {
		if err := s.unreferenced(ctx, b, id); err != nil {
			return err
		}
		return finish(ctx, func(ctx context.Context) error { return b.Delete(ctx, id) })
	})
}

// unreferenced returns an error where a PersistentVolume refers to a volume: the manager attaches it then, and
// pods may have it.
func (s *Service) unreferenced(ctx context.Context, b storage, id string) error {
	volumes, err := s.VolumesOf(ctx, backend.DriverOf(b.object), id)
	switch {
	case err != nil:
		return backend.Unavailable.Errorf("looking for a PersistentVolume of volume %s: %w", id, err)
	case len(volumes) > 0:
		return precondition("PersistentVolume %s refers to volume %s: delete it first", volumes[0].Name, id)
	}
	return nil
}

// ValidateVolumeCapabilities implements csispec.ControllerServer. It compares the capabilities with what the
// backend can make.
func (s *Service) ValidateVolumeCapabilities(ctx context.Context, req *csispec.ValidateVolumeCapabilitiesRequest) (*csispec.ValidateVolumeCapabilitiesResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, missing("volume_id")
	}
	wanted, err := useOf(req.GetVolumeCapabilities())
	if err != nil {
		return nil, err
	}
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := b.existing(ctx, req.GetVolumeId()); err != nil {
		return nil, err
	}
	if refusal := b.Capabilities().CheckUse(wanted.access, wanted.mode); refusal != nil {
		return &csispec.ValidateVolumeCapabilitiesResponse{Message: refusal.Error()}, nil //nolint:nilerr // the refusal is the answer
	}
	return &csispec.ValidateVolumeCapabilitiesResponse{Confirmed: &csispec.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.GetVolumeContext(), VolumeCapabilities: req.GetVolumeCapabilities(), Parameters: req.GetParameters(),
	}}, nil
}

// ControllerExpandVolume implements csispec.ControllerServer.
func (s *Service) ControllerExpandVolume(ctx context.Context, req *csispec.ControllerExpandVolumeRequest) (*csispec.ControllerExpandVolumeResponse, error) {
	id := req.GetVolumeId()
	if id != "" && req.GetCapacityRange() == nil {
		return nil, missing("capacity_range")
	}
	wanted := *resource.NewQuantity(req.GetCapacityRange().GetRequiredBytes(), resource.BinarySI)
	if wanted.Value() <= 0 && id != "" {
		return nil, status.Error(codes.InvalidArgument, "capacity_range: required_bytes is missing")
	}
	var grown backend.Expansion
	err := s.ofVolume(ctx, id, func(b storage) error {
		return finish(ctx, func(ctx context.Context) (err error) {
			grown, err = backend.Expand(ctx, b.Backend, backend.ExpandRequest{ID: id, Capacity: wanted})
			return err
		})
	})
	switch {
	case err != nil:
		return nil, err
	case !fits(req.GetCapacityRange(), grown.Capacity.Value()):
		return nil, status.Errorf(codes.OutOfRange, "volume %s has %s now, which isn't within capacity_range", id, grown.Capacity.String())
	}
	return &csispec.ControllerExpandVolumeResponse{CapacityBytes: grown.Capacity.Value(), NodeExpansionRequired: grown.OnNode}, nil
}

// ControllerModifyVolume implements csispec.ControllerServer. Without parameters nothing changes.
func (s *Service) ControllerModifyVolume(ctx context.Context, req *csispec.ControllerModifyVolumeRequest) (*csispec.ControllerModifyVolumeResponse, error) {
	id := req.GetVolumeId()
	wanted := backend.Attributes{Class: "mutable_parameters", Parameters: req.GetMutableParameters()}
	return &csispec.ControllerModifyVolumeResponse{}, s.ofVolume(ctx, id, func(b storage) error {
		return finish(ctx, func(ctx context.Context) error { return backend.Modify(ctx, b.Backend, id, wanted) })
	})
}
