package csi

import (
	"context"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-dev/stowage/internal/backend"
)

const (
	// pageSize is how many volumes a page of a list has, and maxPages how many pages are read.
	pageSize = 500
	maxPages = 200
)

// IsAttached reads which nodes have a volume, of a driver that lists them. Of all others the answer is
// true: only Detach makes sure.
func (b *csiBackend) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	if node.DriverID == "" {
		return false, nil
	}
	controller, can, err := b.driver(ctx)
	if err != nil {
		return false, err
	}
	if !can.has(csispec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME) {
		return false, nil
	}
	if !can.has(csispec.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES) {
		return true, nil
	}
	token := ""
	for range maxPages {
		page, err := call(ctx, b.spec, controller.ListVolumes, &csispec.ListVolumesRequest{MaxEntries: pageSize, StartingToken: token})
		if err != nil {
			return false, b.spec.unanswered("ListVolumes", err)
		}
		for _, entry := range page.GetEntries() {
			if entry.GetVolume().GetVolumeId() == id {
				return slices.Contains(entry.GetStatus().GetPublishedNodeIds(), node.DriverID), nil
			}
		}
		if token = page.GetNextToken(); token == "" {
			break
		}
	}
	// A list may be late: of a volume that isn't in it, nothing is certain.
	return true, nil
}
