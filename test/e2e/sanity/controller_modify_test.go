package sanity_test

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-dev/stowage/internal/backend"
)

// attributesOf are those of a VolumeAttributesClass with these parameters; nil for none.
func attributesOf(parameters map[string]string) *backend.Attributes {
	if len(parameters) == 0 {
		return nil
	}
	return &backend.Attributes{Class: "sanity", UID: "sanity", Parameters: parameters}
}

// ControllerModifyVolume has the backend change a volume.
func (s *controller) ControllerModifyVolume(ctx context.Context, req *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	known, err := s.find(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	wanted := attributesOf(req.GetMutableParameters())
	if wanted == nil {
		return nil, missing("mutable_parameters")
	}
	err = s.finished(ctx, func(ctx context.Context) error { return backend.Modify(ctx, s.Backend, known.made.Handle, *wanted) })
	if err != nil {
		return nil, err
	}
	return &csi.ControllerModifyVolumeResponse{}, nil
}
