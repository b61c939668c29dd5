package cloud

import (
	"context"
	"slices"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend/gce/place"
)

// ZoneDown is the status of a zone that is down.
const ZoneDown = "DOWN"

// AllZones reads the zones of the project, by name.
func (c *Client) AllZones(ctx context.Context) (map[string]*compute.Zone, error) {
	found := map[string]*compute.Zone{}
	err := c.compute.Zones.List(c.Project).Pages(ctx, func(page *compute.ZoneList) error {
		for _, zone := range page.Items {
			found[zone.Name] = zone
		}
		return nil
	})
	return found, c.aboutProject(err)
}

// IsDown reports whether the cloud says that a zone is down.
func (c *Client) IsDown(ctx context.Context, zone string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	found, err := c.compute.Zones.Get(c.Project, zone).Context(ctx).Do()
	return err == nil && found.Status == ZoneDown, err
}

// mayTake reports whether a writer may take a replicated disk from all instances that have it: their zones are down, so none
// of them can be asked to detach it. The storage refuses what such an instance still writes. A disk that several instances
// can write isn't taken: it is shared.
func (c *Client) mayTake(ctx context.Context, found *Disk, to *Instance, mode string) (bool, error) {
	if !found.At().IsRegion() || len(found.Users) == 0 || mode != ReadWrite || found.IsWrittenByMany() {
		return false, nil
	}
	for _, user := range found.Users {
		zone := place.OfPath(PathOf(user)).Zone
		if zone == to.At.Zone {
			return false, nil
		}
		if down, err := c.IsDown(ctx, zone); !down || err != nil {
			return false, err
		}
	}
	return true, nil
}

// ZoneNames are the names of zones, in order.
func ZoneNames(zones map[string]*compute.Zone) []string {
	var all []string
	for name := range zones {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
