package gcemock

import (
	"strconv"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/disks"
	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

func getProject(_ *engine.Engine, r *wire.Request) (any, error) {
	path := wire.ProjectPath(r.Project)
	return &compute.Project{
		Kind: "compute#project", Id: wire.IDOf(path), Name: r.Project, CreationTimestamp: wire.CatalogTime,
		DefaultServiceAccount: strconv.FormatUint(wire.IDOf(path)>>24, 10) + "-compute@developer.gserviceaccount.com",
		SelfLink:              r.Link(path),
	}, nil
}

func getRegion(s *engine.Engine, r *wire.Request) (any, error) {
	name := r.PathValue("name")
	if !s.Options.Locations.HasRegion(name) {
		return nil, wire.NotFound(wire.ProjectPath(r.Project) + "/regions/" + name)
	}
	s.Lock()
	defer s.Unlock()
	return region(s, r, name), nil
}

func listRegions(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	var all []wire.Listed[*compute.Region]
	for _, name := range s.Options.Locations.Regions() {
		all = append(all, wire.Listed[*compute.Region]{Name: name, Item: region(s, r, name)})
	}
	return wire.List(r, "regionList", wire.ProjectPath(r.Project)+"/regions", all)
}

// region is a region as a client sees it. The store is locked.
func region(s *engine.Engine, r *wire.Request, name string) *compute.Region {
	path := wire.ProjectPath(r.Project) + "/regions/" + name
	region := &compute.Region{
		Kind: "compute#region", Id: wire.IDOf(path), Name: name, CreationTimestamp: wire.CatalogTime,
		Description: name, Status: "UP", SelfLink: r.Link(path),
	}
	for _, zone := range s.Options.Locations.Zones {
		if wire.RegionOf(zone) == name {
			region.Zones = append(region.Zones, r.Link(wire.ZonePath(r.Project, zone)))
		}
	}
	if s.Options.QuotaGb > 0 {
		used := s.UsedGb(r.Project, name)
		region.Quotas = []*compute.Quota{{
			Metric: disks.QuotaMetric, Limit: float64(s.Options.QuotaGb), Usage: float64(used), ForceSendFields: []string{"Usage"},
		}}
	}
	return region
}

func zone(s *engine.Engine, r *wire.Request, name string) *compute.Zone {
	status := "UP"
	if s.Faults.IsDown(name) {
		status = "DOWN"
	}
	path := wire.ZonePath(r.Project, name)
	return &compute.Zone{
		Kind: "compute#zone", Id: wire.IDOf(path), Name: name, Description: name, CreationTimestamp: wire.CatalogTime,
		Region: r.Link(wire.RegionPath(r.Project, name)), Status: status, SelfLink: r.Link(path),
	}
}

func getZone(s *engine.Engine, r *wire.Request) (any, error) { return zone(s, r, r.Zone), nil }

func listZones(s *engine.Engine, r *wire.Request) (any, error) {
	var all []wire.Listed[*compute.Zone]
	for _, name := range s.Options.Locations.Zones {
		all = append(all, wire.Listed[*compute.Zone]{Name: name, Item: zone(s, r, name)})
	}
	return wire.List(r, "zoneList", wire.ProjectPath(r.Project)+"/zones", all)
}
