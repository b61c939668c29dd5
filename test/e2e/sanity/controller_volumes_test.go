package sanity_test

import (
	"context"
	"maps"
	"reflect"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/backend"
)

// CreateVolume has the backend make a volume.
func (s *controller) CreateVolume(ctx context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	request, err := s.requestOf(req)
	if err != nil {
		return nil, err
	}
	if err := s.checkParameters(req); err != nil {
		return nil, err
	}
	source := req.GetVolumeContentSource().GetVolume().GetVolumeId() + req.GetVolumeContentSource().GetSnapshot().GetSnapshotId()
	if known, made := s.volumes[request.ID]; made {
		if !reflect.DeepEqual(known.request.AccessModes, request.AccessModes) || known.request.VolumeMode != request.VolumeMode ||
			known.source != source || !fits(req.GetCapacityRange(), known.made.Capacity.Value()) {
			return nil, status.Errorf(codes.AlreadyExists, "volume %s was made for another request", request.ID)
		}
		return s.created(req, known), nil
	}
	if request.Source, err = s.sourceOf(req); err != nil {
		return nil, err
	}
	request.Attributes = attributesOf(req.GetMutableParameters())
	return s.create(ctx, req, &volume{request: request, source: source, on: map[string]bool{}})
}

// checkParameters checks those of the class, as the manager does.
func (s *controller) checkParameters(req *csi.CreateVolumeRequest) error {
	parameters, err := backend.ParseParameters(req.GetParameters())
	if err == nil && parameters.Backend != s.Name {
		err = backend.Invalid.Errorf("there is no StorageBackend %s", parameters.Backend)
	}
	return toStatus(err)
}

// sourceOf is the volume, or the snapshot, that a new volume is to be a copy of, if it is to be one.
func (s *controller) sourceOf(req *csi.CreateVolumeRequest) (*backend.Source, error) {
	if req.GetVolumeContentSource() == nil {
		return nil, nil
	}
	if kept := req.GetVolumeContentSource().GetSnapshot().GetSnapshotId(); kept != "" {
		if _, made := s.snapshots[kept]; !made {
			return nil, status.Errorf(codes.NotFound, "there is no snapshot %s", kept)
		}
		return &backend.Source{Snapshot: kept}, nil
	}
	copied, err := s.find(req.GetVolumeContentSource().GetVolume().GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &backend.Source{ID: copied.made.Handle, Claim: copied.request.Claim}, nil
}

func (s *controller) create(ctx context.Context, req *csi.CreateVolumeRequest, wanted *volume) (*csi.CreateVolumeResponse, error) {
	if err := s.Backend.Capabilities().Check(wanted.request); err != nil {
		return nil, toStatus(err)
	}
	err := s.finished(ctx, func(ctx context.Context) (err error) {
		wanted.made, err = s.Backend.Provision(ctx, wanted.request)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.volumes[wanted.made.Handle] = wanted
	if has := wanted.made.Capacity.Value(); !fits(req.GetCapacityRange(), has) {
		return nil, status.Errorf(codes.OutOfRange, "the volume was made with %d bytes", has)
	}
	return s.created(req, wanted), nil
}

// fits reports whether a capacity is what was asked for.
func fits(req *csi.CapacityRange, bytes int64) bool {
	return bytes >= req.GetRequiredBytes() && (req.GetLimitBytes() == 0 || bytes <= req.GetLimitBytes())
}

func (s *controller) created(req *csi.CreateVolumeRequest, known *volume) *csi.CreateVolumeResponse {
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: known.made.Handle, CapacityBytes: known.made.Capacity.Value(), VolumeContext: s.attributes(known.made),
		ContentSource: req.GetVolumeContentSource(), AccessibleTopology: accessible(known.made),
	}}
}

// DeleteVolume has the backend remove a volume. No backend has one whose id isn't of the
// form that all ids are of: that there is none is a success.
func (s *controller) DeleteVolume(ctx context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	id := req.GetVolumeId()
	if id == "" {
		return nil, missing("volume_id")
	}
	if s.ClaimOf == nil && !isVolumeID(id) {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if known := s.volumes[id]; known != nil && len(known.on) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is attached to %v", id, known.on)
	}
	if err := s.finished(ctx, func(ctx context.Context) error { return s.Backend.Delete(ctx, id) }); err != nil {
		return nil, err
	}
	delete(s.volumes, id)
	maps.DeleteFunc(s.claims, func(_ string, uid types.UID) bool { return backend.VolumeID(uid, 1) == id })
	return &csi.DeleteVolumeResponse{}, nil
}

func isVolumeID(id string) bool {
	uid, ours := strings.CutPrefix(id, backend.VolumeID("", 1))
	_, err := uuid.Parse(uid)
	return ours && err == nil
}

// ValidateVolumeCapabilities reports whether a volume can be used in some ways.
func (s *controller) ValidateVolumeCapabilities(_ context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	known, err := s.find(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	wanted := backend.Request{}
	if wanted.VolumeMode, wanted.AccessModes, err = modesOf(req.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	if refusal := s.Backend.Capabilities().Check(wanted); refusal != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: refusal.Error()}, nil //nolint:nilerr // the refusal is the answer
	}
	if wanted.VolumeMode != known.request.VolumeMode {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: "the volume was made for another volume mode"}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.GetVolumeContext(), VolumeCapabilities: req.GetVolumeCapabilities(), Parameters: req.GetParameters(),
	}}, nil
}
