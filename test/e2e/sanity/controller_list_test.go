package sanity_test

import (
	"context"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// ListVolumes lists what the backend holds, in pages whose tokens are places in the list.
func (s *controller) ListVolumes(ctx context.Context, req *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	if !is[backend.Lister](s) {
		return nil, status.Error(codes.Unimplemented, "the backend can't list what it holds")
	}
	ids, err := s.held(ctx)
	if err != nil {
		return nil, err
	}
	begin := 0
	if token := req.GetStartingToken(); token != "" {
		if begin, err = strconv.Atoi(token); err != nil || begin < 0 || begin > len(ids) {
			return nil, status.Errorf(codes.Aborted, "starting_token %q is none of this list's: start again", token)
		}
	}
	response, end := &csi.ListVolumesResponse{}, len(ids)
	if most := int(req.GetMaxEntries()); most > 0 && begin+most < end {
		end = begin + most
		response.NextToken = strconv.Itoa(end)
	}
	for _, id := range ids[begin:end] {
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{Volume: s.listed(id)})
	}
	return response, nil
}

// held are the ids of what the backend holds, in order; none where it can't list them.
func (s *controller) held(ctx context.Context) (ids []string, err error) {
	lister, can := backend.As[backend.Lister](s.Backend)
	if !can {
		return nil, nil
	}
	all, err := lister.List(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	slices.Sort(ids)
	return ids, nil
}

func (s *controller) listed(id string) *csi.Volume {
	known, made := s.volumes[id]
	if !made {
		return &csi.Volume{VolumeId: id}
	}
	return &csi.Volume{
		VolumeId: id, CapacityBytes: known.made.Capacity.Value(),
		VolumeContext: s.attributes(known.made), AccessibleTopology: accessible(known.made),
	}
}

// ControllerExpandVolume has the backend grow a volume.
func (s *controller) ControllerExpandVolume(ctx context.Context, req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	known, err := s.find(req.GetVolumeId())
	switch {
	case err != nil:
		return nil, err
	case req.GetCapacityRange() == nil:
		return nil, missing("capacity_range")
	}
	wanted := *resource.NewQuantity(req.GetCapacityRange().GetRequiredBytes(), resource.BinarySI)
	var grown backend.Expansion
	err = s.finished(ctx, func(ctx context.Context) (err error) {
		grown, err = backend.Expand(ctx, s.Backend, backend.ExpandRequest{ID: known.made.Handle, Capacity: wanted})
		return err
	})
	if err != nil {
		return nil, err
	}
	known.made.Capacity = grown.Capacity
	if !fits(req.GetCapacityRange(), grown.Capacity.Value()) {
		return nil, status.Errorf(codes.OutOfRange, "the volume has %s now", grown.Capacity.String())
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: grown.Capacity.Value(), NodeExpansionRequired: grown.OnNode}, nil
}

// GetCapacity returns how much room the backend has.
func (s *controller) GetCapacity(ctx context.Context, _ *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	reporter, can := backend.As[backend.CapacityReporter](s.Backend)
	if !can {
		return nil, status.Error(codes.Unimplemented, "the backend doesn't know how much it can hold")
	}
	space, err := reporter.Space(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return &csi.GetCapacityResponse{AvailableCapacity: max(space.Total.Value()-space.Used.Value(), 0)}, nil
}
