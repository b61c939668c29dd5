package cloud

import (
	"context"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
)

// CheckNotBegun looks for a disk that was asked for and isn't to be seen yet. What was
// asked for and hasn't arrived nobody sees: whoever doesn't know how a call ended repeats
// it before this.
func (c *Client) CheckNoInsert(ctx context.Context, id string, zones ...string) error {
	for _, zone := range zones {
		inserts, err := c.running(ctx, zone, "insert")
		if err != nil {
			return err
		}
		for _, operation := range inserts {
			if PathOf(operation.TargetLink) == c.DiskPath(zone, id) {
				return backend.InProgress.Errorf("disk %s is being made in zone %s (operation %s): waiting for it to be there", id, zone, operation.Name)
			}
		}
	}
	return nil
}

// CheckNotBegunNear looks for a disk that was asked for, and isn't to be seen yet, in
// a zone that is none of the backend's any more: a caller that is told WrongNode takes it
// that nothing is being made.
func (c *Client) CheckNoInsertNear(ctx context.Context, id, zone string) error {
	if zone == "" || slices.Contains(c.Zones, zone) {
		return nil
	}
	err := c.CheckNoInsert(ctx, id, zone)
	switch ReasonOf(err) {
	case NotFound, invalid:
		// The cloud has no such zone.
		return nil
	}
	return err
}
