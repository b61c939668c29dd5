package wire

import "slices"

// Locations are the projects and zones of a cloud.
type Locations struct{ Projects, Zones []string }

// Regions are the regions of all zones, in order.
func (p Locations) Regions() (regions []string) {
	for _, zone := range p.Zones {
		regions = append(regions, RegionOf(zone))
	}
	slices.Sort(regions)
	return slices.Compact(regions)
}

// HasRegion reports whether a zone of the region exists.
func (p Locations) HasRegion(name string) bool { return slices.Contains(p.Regions(), name) }

// Scopes are the scopes of aggregated lists: all regions and zones.
func (p Locations) Scopes() (scopes []string) {
	for _, region := range p.Regions() {
		scopes = append(scopes, "regions/"+region)
	}
	return append(scopes, p.ZoneScopes()...)
}

// ZoneScopes are those of resources that only zones have.
func (p Locations) ZoneScopes() (scopes []string) {
	for _, zone := range p.Zones {
		scopes = append(scopes, "zones/"+zone)
	}
	return scopes
}
