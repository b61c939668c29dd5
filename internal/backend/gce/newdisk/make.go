package newdisk

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// Make makes a disk, and reads it. A second call, also of another process, takes part in the first.
func (m Maker) Make(ctx context.Context, c *cloud.Client, plan Draft) (*cloud.Disk, error) {
	id := plan.Request.ID
	disk, err := m.Describe(ctx, c, plan)
	if err != nil {
		return nil, err
	}
	if err := c.InsertDisk(ctx, plan.At(), disk); err != nil {
		return nil, m.whyNotMade(ctx, c, plan, disk, err)
	}
	made, err := c.Disk(ctx, plan.At(), id)
	if err == nil && made == nil {
		// A pod may have written it already: never an empty disk instead.
		err = backend.Invalid.Errorf("disk %s was made in %s and was deleted since, not by Stowage: create the claim again", id, plan.At())
	}
	return made, err
}
