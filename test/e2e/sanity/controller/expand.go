package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// ControllerExpandVolume has the backend grow a volume.
func (s *Server) ControllerExpandVolume(ctx context.Context, asked *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	known, err := s.find(asked.GetVolumeId())
	switch {
	case err != nil:
		return nil, err
	case asked.GetCapacityRange() == nil:
		return nil, missing("capacity_range")
	}
	wanted := *resource.NewQuantity(asked.GetCapacityRange().GetRequiredBytes(), resource.BinarySI)
	var grown backend.Expansion
	err = s.finished(ctx, func(ctx context.Context) (err error) {
		grown, err = backend.Expand(ctx, s.Backend, known.made.Handle, wanted)
		return err
	})
	if err != nil {
		return nil, err
	}
	known.made.Capacity = grown.Capacity
	if !fits(asked.GetCapacityRange(), grown.Capacity.Value()) {
		return nil, status.Errorf(codes.OutOfRange, "the volume has %s now", grown.Capacity.String())
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: grown.Capacity.Value(), NodeExpansionRequired: grown.OnNode}, nil
}

// GetCapacity tells how much room the backend has.
func (s *Server) GetCapacity(ctx context.Context, _ *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	reporter, can := backend.As[backend.CapacityReporter](s.Backend)
	if !can {
		return nil, status.Error(codes.Unimplemented, "the backend can't tell how much it can hold")
	}
	space, err := reporter.Space(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return &csi.GetCapacityResponse{AvailableCapacity: max(space.Total.Value()-space.Used.Value(), 0)}, nil
}
