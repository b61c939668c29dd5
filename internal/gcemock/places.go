package gcemock

import "slices"

// places are the projects and zones of a cloud.
type places struct{ Projects, Zones []string }

// regions are the regions of all zones, in order.
func (p places) regions() (regions []string) {
	for _, zone := range p.Zones {
		regions = append(regions, regionOf(zone))
	}
	slices.Sort(regions)
	return slices.Compact(regions)
}

func (p places) hasRegion(name string) bool { return slices.Contains(p.regions(), name) }

// scopes are the scopes of aggregated lists: all regions and zones.
func (p places) scopes() (scopes []string) {
	for _, region := range p.regions() {
		scopes = append(scopes, "regions/"+region)
	}
	for _, zone := range p.Zones {
		scopes = append(scopes, "zones/"+zone)
	}
	return scopes
}
