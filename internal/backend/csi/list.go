package csi

import (
	"context"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
	"github.com/stowage-dev/stowage/internal/backend/csi/wire"
	"github.com/stowage-dev/stowage/internal/message"
)

const (
	// pageSize is how many volumes a page of a list has, and maxPages how many pages are read.
	pageSize = 500
	maxPages = 200
	// maxPublished is how many nodes may have a volume: those of the largest cluster.
	maxPublished = 5000
	// maxGets bounds the calls about one volume each in one audit.
	maxGets = 1000
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
		page, err := calling.Call(ctx, b.spec.driver, controller.ListVolumes, &csispec.ListVolumesRequest{MaxEntries: pageSize, StartingToken: token})
		if err != nil {
			return false, b.spec.driver.Unanswered("ListVolumes", err)
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

// Inspect implements backend.Inspector with one list of the volumes, and one of those that aren't well. A
// driver without a list is asked for one volume after the other, as far as the time goes.
func (b *csiBackend) Inspect(ctx context.Context, ids []string) (backend.Inspection, error) {
	controller, can, err := b.driver(ctx)
	if err != nil {
		return backend.Inspection{}, err
	}
	found := backend.Inspection{
		FindsMissing: can.has(csispec.ControllerServiceCapability_RPC_LIST_VOLUMES) || can.has(csispec.ControllerServiceCapability_RPC_GET_VOLUME),
	}
	if found.Missing, err = b.missing(ctx, controller, can, ids); err != nil {
		return found, err
	}
	switch {
	case can.has(csispec.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH):
		found.Health, err = b.listHealth(ctx, controller, ids)
	case can.has(csispec.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH):
		found.Health, err = b.getHealth(ctx, controller, ids)
	}
	return found, err
}

// missing returns the volumes that a driver doesn't have: those that a complete list lacks and, of a driver
// that can say so of one volume, that it denies, too.
func (b *csiBackend) missing(ctx context.Context, controller csispec.ControllerClient, can abilities, ids []string) (map[string]bool, error) {
	unlisted, lists := setOf(ids), can.has(csispec.ControllerServiceCapability_RPC_LIST_VOLUMES)
	if lists {
		complete, err := b.eachListed(ctx, controller, func(entry *csispec.ListVolumesResponse_Entry) (more bool) {
			delete(unlisted, entry.GetVolume().GetVolumeId())
			return true
		})
		if err != nil || !complete {
			return nil, err
		}
	}
	if !can.has(csispec.ControllerServiceCapability_RPC_GET_VOLUME) {
		if !lists {
			return nil, nil
		}
		return unlisted, nil
	}
	missing := map[string]bool{}
	for _, id := range firstOf(ids, unlisted) {
		_, err := calling.Call(ctx, b.spec.driver, controller.ControllerGetVolume, &csispec.ControllerGetVolumeRequest{VolumeId: id})
		switch {
		case status.Code(err) == codes.NotFound:
			missing[id] = true
		case ctx.Err() != nil:
			return missing, nil //nolint:nilerr // the time is over: the next audit asks for the rest
		case err != nil:
			return nil, b.spec.driver.Unanswered("ControllerGetVolume", err)
		}
	}
	return missing, nil
}

// listHealth returns what a driver says is wrong with volumes. Its list has those alone that aren't well.
func (b *csiBackend) listHealth(ctx context.Context, controller csispec.ControllerClient, ids []string) (map[string]string, error) {
	found, token := make(map[string]string, len(ids)), ""
	for _, id := range ids {
		found[id] = ""
	}
	for range maxPages {
		page, err := calling.Call(ctx, b.spec.driver, controller.ControllerListVolumeHealth, &csispec.ControllerListVolumeHealthRequest{MaxEntries: pageSize, StartingToken: token})
		if err != nil {
			return nil, b.spec.driver.Unanswered("ControllerListVolumeHealth", err)
		}
		for _, health := range page.GetEntries() {
			if _, asked := found[health.GetVolumeId()]; asked {
				found[health.GetVolumeId()] = message.Cut(wire.HealthText(health), calling.MaxMessage)
			}
		}
		if token = page.GetNextToken(); token == "" {
			return found, nil
		}
	}
	return nil, nil
}

// getHealth asks for one volume after the other.
func (b *csiBackend) getHealth(ctx context.Context, controller csispec.ControllerClient, ids []string) (map[string]string, error) {
	found := map[string]string{}
	for _, id := range ids[:min(maxGets, len(ids))] {
		answer, err := calling.Call(ctx, b.spec.driver, controller.ControllerGetVolumeHealth, &csispec.ControllerGetVolumeHealthRequest{VolumeId: id})
		switch {
		case err == nil:
			found[id] = message.Cut(wire.HealthText(answer.GetVolumeHealth()), calling.MaxMessage)
		case ctx.Err() != nil:
			return found, nil //nolint:nilerr // the time is over: the next audit asks for the rest
		case status.Code(err) != codes.NotFound:
			return nil, b.spec.driver.Unanswered("ControllerGetVolumeHealth", err)
		}
	}
	return found, nil
}

func setOf(ids []string) map[string]bool {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// firstOf returns the first ids that are in a set: more calls than these no audit makes.
func firstOf(ids []string, of map[string]bool) []string {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !of[id] })
	return ids[:min(maxGets, len(ids))]
}
