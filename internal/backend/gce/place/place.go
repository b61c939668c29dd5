// Package place distinguishes disks of a zone from those of a region, which are replicated in two of its zones. The Compute
// API has calls of its own for each. It decides nothing: package cloud knows when which call is made.
package place

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
)

// Place is where a disk is: in a zone, or in a region.
type Place struct{ Zone, Region string }

// Zone is a place in a zone.
func Zone(name string) Place { return Place{Zone: name} }

// RegionOf is the place in the region that a zone is in.
func RegionOf(zone string) Place {
	region := zone
	if at := strings.LastIndexByte(zone, '-'); at >= 0 {
		region = zone[:at]
	}
	return Place{Region: region}
}

// Zones are places in zones.
func Zones(names ...string) (all []Place) {
	for _, name := range names {
		all = append(all, Zone(name))
	}
	return all
}

// Around are zones, and their regions.
func Around(zones ...string) (all []Place) {
	all = Zones(zones...)
	for _, zone := range zones {
		if region := RegionOf(zone); !slices.Contains(all, region) {
			all = append(all, region)
		}
	}
	return all
}

// Of is where a disk is.
func Of(disk *compute.Disk) Place {
	if disk.Zone == "" {
		return Place{Region: nameOf(disk.Region)}
	}
	return Zone(nameOf(disk.Zone))
}

// OfPath is where a disk is that has a path projects/PROJECT/zones/ZONE/… or projects/PROJECT/regions/REGION/…
func OfPath(path string) Place {
	parts := strings.Split(path, "/")
	switch {
	case len(parts) < 4:
		return Place{}
	case parts[2] == "regions":
		return Place{Region: parts[3]}
	default:
		return Zone(parts[3])
	}
}

// ZonesOf are the zones whose machines can have a disk.
func ZonesOf(disk *compute.Disk) []string {
	if disk.Zone != "" {
		return []string{nameOf(disk.Zone)}
	}
	var zones []string
	for _, zone := range disk.ReplicaZones {
		zones = append(zones, nameOf(zone))
	}
	return zones
}

// IsRegion reports whether the place is a region.
func (p Place) IsRegion() bool { return p.Zone == "" && p.Region != "" }

// Path is how the place is named in calls.
func (p Place) Path(project string) string {
	if p.IsRegion() {
		return fmt.Sprintf("projects/%s/regions/%s", project, p.Region)
	}
	return fmt.Sprintf("projects/%s/zones/%s", project, p.Zone)
}

// String is for people.
func (p Place) String() string {
	if p.IsRegion() {
		return "region " + p.Region
	}
	return "zone " + p.Zone
}

func nameOf(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }
