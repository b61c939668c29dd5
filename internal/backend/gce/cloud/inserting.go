package cloud

import (
	"context"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
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

// CheckNoInsertNear is CheckNoInsert for a zone that isn't the backend's any more: a caller that
// gets WrongNode concludes that nothing is being made.
func (c *Client) CheckNoInsertNear(ctx context.Context, id, zone string) error {
	if zone == "" || slices.Contains(c.Zones, zone) {
		return nil
	}
	err := c.CheckNoInsert(ctx, id, place.Around(zone)...)
	switch ReasonOf(err) {
	case NotFound, Invalid:
		// The cloud has no such zone.
		return nil
	}
	return err
}
