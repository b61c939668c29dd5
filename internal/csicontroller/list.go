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

// Limits of answers: how many volumes one has, so that it fits a message, and snapshots, of which each is looked up.
const (
	maxPage      = 1000
	maxSnapshots = 100
)

// ListVolumes implements csispec.ControllerServer. It lists the volumes that calls made, in the order of their
// ids. A token is the last id of the page before: that volume may be gone, and others may have come.
func (s *Service) ListVolumes(ctx context.Context, req *csispec.ListVolumesRequest) (*csispec.ListVolumesResponse, error) {
	after := req.GetStartingToken()
	if err := checkPage(after, named.IsVolume, req.GetMaxEntries()); err != nil {
		return nil, err
	}
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if !is[backend.Lister](b.Backend) {
		return nil, unimplemented("the storage can't list its volumes")
	}
	ids, more, err := b.page(ctx, after, pageOf(req.GetMaxEntries(), maxPage), isVolume)
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

// checkPage returns an error where a list has no such page. A token is an id.
func checkPage(token string, isID func(string) bool, most int32) error {
	switch {
	case token != "" && !isID(token):
		return status.Errorf(codes.Aborted, "starting_token %.200q is none of this list's: start again", token)
	case most < 0:
		return status.Error(codes.InvalidArgument, "max_entries is negative")
	}
	return nil
}

// pageOf is how much an answer may have, of which a call asks for no more than asked, unless that is 0.
func pageOf(asked int32, most int) int {
	if asked > 0 {
		return min(int(asked), most)
	}
	return most
}

// page returns at most so many ids after one, of what is listed, and whether there are more.
func (s storage) page(ctx context.Context, after string, most int, isListed func(backend.Held) bool) (ids []string, more bool, err error) {
	for from := after; ; {
		held, next, err := backend.ListAfter(ctx, s.Backend, from)
		if err != nil {
			return nil, false, err
		}
		for _, one := range held {
			if isListed(one) && one.ID > after {
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
