package controller

import (
	"context"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
)

// ListVolumes lists what the backend holds, in pages whose tokens are places in the list.
func (s *Server) ListVolumes(ctx context.Context, asked *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	ids, err := s.held(ctx)
	if err != nil {
		return nil, err
	}
	begin := 0
	if token := asked.GetStartingToken(); token != "" {
		if begin, err = strconv.Atoi(token); err != nil || begin < 0 || begin > len(ids) {
			return nil, status.Errorf(codes.Aborted, "starting_token %q is none of this list's: begin anew", token)
		}
	}
	response, end := &csi.ListVolumesResponse{}, len(ids)
	if most := int(asked.GetMaxEntries()); most > 0 && begin+most < end {
		end = begin + most
		response.NextToken = strconv.Itoa(end)
	}
	for _, id := range ids[begin:end] {
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{Volume: s.listed(id)})
	}
	return response, nil
}

// held are the ids of what the backend holds, in order.
func (s *Server) held(ctx context.Context) (ids []string, err error) {
	lister, can := backend.As[backend.Lister](s.Backend)
	if !can {
		return nil, status.Error(codes.Unimplemented, "the backend can't tell what it holds")
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

// Held are the ids of what the backend holds; none where it can't tell.
func (s *Server) Held(ctx context.Context) ([]string, error) {
	if !is[backend.Lister](s) {
		return nil, nil
	}
	return s.held(ctx)
}

func (s *Server) listed(id string) *csi.Volume {
	known, made := s.volumes[id]
	if !made {
		return &csi.Volume{VolumeId: id}
	}
	return &csi.Volume{
		VolumeId: id, CapacityBytes: known.made.Capacity.Value(),
		VolumeContext: s.attributes(known.made), AccessibleTopology: accessible(known.made),
	}
}
