package csicontroller

import (
	"context"
	"slices"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

// maxPage is how many volumes an answer has at most, so that it fits a message.
const maxPage = 1000

// ListVolumes implements csispec.ControllerServer. It lists the volumes that calls made, in the order of their
// ids. A token is the last id of the page before: that volume may be gone, and others may have come.
func (s *Service) ListVolumes(ctx context.Context, req *csispec.ListVolumesRequest) (*csispec.ListVolumesResponse, error) {
	after := req.GetStartingToken()
	switch {
	case after != "" && !named.IsVolume(after):
		return nil, status.Errorf(codes.Aborted, "starting_token %.200q is none of this list's: start again", after)
	case req.GetMaxEntries() < 0:
		return nil, status.Error(codes.InvalidArgument, "max_entries is negative")
	}
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if !is[backend.Lister](b.Backend) {
		return nil, unimplemented("the storage can't list its volumes")
	}
	most := maxPage
	if asked := int(req.GetMaxEntries()); asked > 0 {
		most = min(asked, maxPage)
	}
	ids, more, err := b.page(ctx, after, most)
	if err != nil {
		return nil, err
	}
	response := &csispec.ListVolumesResponse{}
	for _, id := range ids {
		response.Entries = append(response.Entries, &csispec.ListVolumesResponse_Entry{Volume: &csispec.Volume{VolumeId: id}})
	}
	if more {
		response.NextToken = ids[len(ids)-1]
	}
	return response, nil
}

// page returns at most so many ids of volumes after one, and whether there are more.
func (s storage) page(ctx context.Context, after string, most int) (ids []string, more bool, err error) {
	for from := after; ; {
		held, next, err := backend.ListAfter(ctx, s.Backend, from)
		if err != nil {
			return nil, false, err
		}
		for _, one := range held {
			if isVolume(one) && one.ID > after {
				ids = append(ids, one.ID)
			}
		}
		if next == "" || len(ids) > most {
			break
		}
		from = next
	}
	slices.SortFunc(ids, strings.Compare)
	ids = slices.Compact(ids)
	return ids[:min(most, len(ids))], len(ids) > most, nil
}

// GetCapacity implements csispec.ControllerServer: the room of all of the storage. The manager publishes that of
// each node for the scheduler.
func (s *Service) GetCapacity(ctx context.Context, req *csispec.GetCapacityRequest) (*csispec.GetCapacityResponse, error) {
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	reporter, can := backend.As[backend.CapacityReporter](b.Backend)
	switch {
	case !can:
		return nil, unimplemented("the storage doesn't report how much room it has")
	case req.GetAccessibleTopology() != nil:
		return nil, status.Error(codes.InvalidArgument, "accessible_topology: the room is known as a whole only: ask without it")
	}
	if len(req.GetParameters()) > 0 {
		if _, err := s.parametersOf(b, req.GetParameters()); err != nil {
			return nil, err
		}
	}
	space, err := reporter.Space(ctx)
	if err != nil {
		return nil, err
	}
	return &csispec.GetCapacityResponse{AvailableCapacity: max(space.Total.Value()-space.Used.Value(), 0)}, nil
}
