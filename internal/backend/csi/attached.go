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
	// maxPublished is how many nodes may have a volume: those of the largest cluster.
	maxPublished = 5000
)

// IsAttached reads which nodes have a volume, of a driver that lists them. Of all others the answer is
// true: only Detach makes sure.
func (b *csiBackend) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	controller, can, err := b.driver(ctx)
	switch {
	case err != nil:
		return false, err
	case !can.has(csispec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME):
		return false, nil
	case !can.has(csispec.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES):
		return true, nil
	}
	nodes, listed, err := b.publishedTo(ctx, controller, id)
	if err != nil {
		return false, err
	}
	if node.DriverID == "" {
		return !listed || len(nodes) > 0, nil
	}
	return !listed || slices.Contains(nodes, node.DriverID), nil
}

// checkUnpublished returns an error where a driver lists nodes that have a volume, and one of them may
// be the node whose id isn't known.
func (b *csiBackend) checkUnpublished(
	ctx context.Context, controller csispec.ControllerClient, can abilities, id string, node backend.NodeIdentity,
) error {
	if !can.has(csispec.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES) {
		return nil
	}
	nodes, _, err := b.publishedTo(ctx, controller, id)
	if err != nil || len(nodes) == 0 {
		return err
	}
	return backend.NotReady.Errorf("driver %s has no id for node %s any more, and volume %.200q is attached to %d nodes: "+
		"detach it by the driver's own means, or start the driver on the node again", b.spec.Driver, node.Name, id, len(nodes))
}

// publishedTo lists the nodes that have a volume, by the driver's ids. A list may be late: of a volume
// that isn't in it, nothing is certain.
func (b *csiBackend) publishedTo(ctx context.Context, controller csispec.ControllerClient, id string) (nodes []string, listed bool, err error) {
	_, err = b.eachListed(ctx, controller, func(entry *csispec.ListVolumesResponse_Entry) (more bool) {
		if entry.GetVolume().GetVolumeId() == id {
			nodes, listed = entry.GetStatus().GetPublishedNodeIds(), true
		}
		return !listed
	})
	return nodes, listed, err
}

// eachListed visits the volumes that a driver lists, until there are no more. It reports whether it has
// seen all that the driver has: a list of too many pages is cut.
func (b *csiBackend) eachListed(
	ctx context.Context, controller csispec.ControllerClient, visit func(*csispec.ListVolumesResponse_Entry) (more bool),
) (complete bool, err error) {
	token := ""
	for range maxPages {
		page, err := call(ctx, b.spec, controller.ListVolumes, &csispec.ListVolumesRequest{MaxEntries: pageSize, StartingToken: token})
		if err != nil {
			return false, b.spec.unanswered("ListVolumes", err)
		}
		for _, entry := range page.GetEntries() {
			if !visit(entry) {
				return false, nil
			}
		}
		if token = page.GetNextToken(); token == "" {
			return true, nil
		}
	}
	return false, nil
}

// Publications implements backend.PublicationLister with one list. A volume on more nodes than a cluster
// has is absent.
func (b *csiBackend) Publications(ctx context.Context, of map[string]bool) (map[string][]string, error) {
	controller, can, err := b.driver(ctx)
	if err != nil || !can.has(csispec.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES) ||
		!can.has(csispec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME) {
		return nil, err
	}
	nodes := map[string][]string{}
	_, err = b.eachListed(ctx, controller, func(entry *csispec.ListVolumesResponse_Entry) (more bool) {
		id, published := entry.GetVolume().GetVolumeId(), entry.GetStatus().GetPublishedNodeIds()
		if of[id] && len(published) <= maxPublished {
			nodes[id] = slices.Clone(published)
		}
		return true
	})
	return nodes, err
}
