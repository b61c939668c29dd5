package gce

import (
	"context"
	"slices"

	"google.golang.org/api/compute/v1"
)

const zoneDown = "DOWN"

func (c *cloud) zonesThere(ctx context.Context) (map[string]*compute.Zone, error) {
	found := map[string]*compute.Zone{}
	err := c.compute.Zones.List(c.project).Pages(ctx, func(page *compute.ZoneList) error {
		for _, zone := range page.Items {
			found[zone.Name] = zone
		}
		return nil
	})
	return found, c.aboutProject(err)
}

func names(zones map[string]*compute.Zone) []string {
	var all []string
	for name := range zones {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
