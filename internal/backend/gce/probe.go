package gce

import (
	"context"
	"strings"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
)

// Probe signs in, and looks for the zones and the type of disk.
func (b *gceBackend) Probe(ctx context.Context) error {
	_, err := inCloud(ctx, b, "trying the Compute API", func(c *cloud.Client) (any, error) { return nil, b.probe(ctx, c) })
	return err
}

// probe asks for what a new disk needs: the project, the zones and the type in each.
func (b *gceBackend) probe(ctx context.Context, c *cloud.Client) error {
	there, err := c.AllZones(ctx)
	if err != nil {
		return err
	}
	for _, zone := range c.Zones {
		known, found := there[zone]
		switch {
		case !found:
			return backend.Invalid.Errorf("project %s has no zone %s: correct gce.zones; it has %s", c.Project, zone, strings.Join(cloud.ZoneNames(there), ", "))
		case known.Status == cloud.ZoneDown:
			return backend.Unavailable.Errorf("zone %s is down: wait, or take it out of gce.zones", zone)
		}
		if _, err := c.DiskType(ctx, place.Zone(zone), b.spec.Disks.Type); err != nil {
			return err
		}
	}
	return nil
}
