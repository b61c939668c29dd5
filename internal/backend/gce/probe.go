package gce

import (
	"context"
	"strings"

	"github.com/stowage-dev/stowage/internal/backend"
)

// probe asks for what a new disk needs: the project, the zones and the type in each.
func (b *gceBackend) probe(ctx context.Context, c *cloud) error {
	there, err := c.zonesThere(ctx)
	if err != nil {
		return err
	}
	for _, zone := range c.zones {
		known, found := there[zone]
		switch {
		case !found:
			return backend.Invalid.Errorf("project %s has no zone %s: correct gce.zones; it has %s", c.project, zone, strings.Join(names(there), ", "))
		case known.Status == zoneDown:
			return backend.Unavailable.Errorf("zone %s is down: wait, or take it out of gce.zones", zone)
		}
		if _, err := c.sizesOf(ctx, zone, b.spec.diskType); err != nil {
			return err
		}
	}
	return nil
}
