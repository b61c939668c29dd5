package cloud

import (
	"context"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
)

// CheckNoInsert returns an error of kind InProgress while a disk is being inserted that no list
// shows yet. A request that has not arrived at the API shows nowhere: a caller that doesn't know
// how its insert ended repeats the insert first.
func (c *Client) CheckNoInsert(ctx context.Context, id string, places ...place.Place) error {
	for _, at := range places {
		inserts, err := c.running(ctx, at, "insert")
		if err != nil {
			return err
		}
		for _, operation := range inserts {
			if PathOf(operation.TargetLink) == c.DiskPath(at, id) {
				return backend.InProgress.Errorf("disk %s is being made in %s (operation %s): waiting for it to be there", id, at, operation.Name)
			}
		}
	}
	return nil
}

// CheckNoInsertNear is CheckNoInsert for zones and their regions, of which the cloud may not have some: that of a node that
// can't have the disk, as its backend and its class are now, and those of a backend. Empty ones don't count.
func (c *Client) CheckNoInsertNear(ctx context.Context, id string, zones ...string) error {
	for _, at := range place.Around(slices.DeleteFunc(slices.Clone(zones), func(zone string) bool { return zone == "" })...) {
		if err := c.CheckNoInsert(ctx, id, at); err != nil && reason.Of(err) != reason.NotFound && !reason.IsNoZone(err) {
			return err
		}
	}
	return nil
}
