package cloud

import (
	"context"
	"slices"

	"google.golang.org/api/compute/v1"
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

// ZoneNames are the names of zones, in order.
func ZoneNames(zones map[string]*compute.Zone) []string {
	var all []string
	for name := range zones {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
