package gcemock

import (
	"strconv"

	"google.golang.org/api/compute/v1"
)

func getProject(s *Engine, r *request) (any, error) {
	path := projectPath(r.project)
	return &compute.Project{
		Kind: "compute#project", Id: idOf(path), Name: r.project, CreationTimestamp: catalogTime,
		DefaultServiceAccount: strconv.FormatUint(idOf(path)>>24, 10) + "-compute@developer.gserviceaccount.com",
		SelfLink:              r.link(path),
	}, nil
}

func getRegion(s *Engine, r *request) (any, error) {
	name := r.PathValue("name")
	if !s.options.Places.hasRegion(name) {
		return nil, errNotFound(projectPath(r.project) + "/regions/" + name)
	}
	s.Lock()
	defer s.Unlock()
	return region(s, r, name), nil
}

func listRegions(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	var all []listed[*compute.Region]
	for _, name := range s.options.Places.regions() {
		all = append(all, listed[*compute.Region]{name: name, item: region(s, r, name)})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	id := projectPath(r.project) + "/regions"
	return &compute.RegionList{Kind: "compute#regionList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
}

// region is a region as a client sees it. The store is locked.
func region(s *Engine, r *request, name string) *compute.Region {
	path := projectPath(r.project) + "/regions/" + name
	region := &compute.Region{
		Kind: "compute#region", Id: idOf(path), Name: name, CreationTimestamp: catalogTime,
		Description: name, Status: "UP", SelfLink: r.link(path),
	}
	for _, zone := range s.options.Places.Zones {
		if regionOf(zone) == name {
			region.Zones = append(region.Zones, r.link(zonePath(r.project, zone)))
		}
	}
	if s.options.QuotaGb > 0 {
		used := s.usedGb(r.project, name)
		region.Quotas = []*compute.Quota{{
			Metric: disksQuota, Limit: float64(s.options.QuotaGb), Usage: float64(used), ForceSendFields: []string{"Usage"},
		}}
	}
	return region
}

func zone(s *Engine, r *request, name string) *compute.Zone {
	path := zonePath(r.project, name)
	return &compute.Zone{
		Kind: "compute#zone", Id: idOf(path), Name: name, Description: name, CreationTimestamp: catalogTime,
		Region: r.link(regionPath(r.project, name)), Status: "UP", SelfLink: r.link(path),
	}
}

func getZone(s *Engine, r *request) (any, error) { return zone(s, r, r.zone), nil }

func listZones(s *Engine, r *request) (any, error) {
	var all []listed[*compute.Zone]
	for _, name := range s.options.Places.Zones {
		all = append(all, listed[*compute.Zone]{name: name, item: zone(s, r, name)})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	id := projectPath(r.project) + "/zones"
	return &compute.ZoneList{Kind: "compute#zoneList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
}
