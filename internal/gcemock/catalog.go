package gcemock

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/api/compute/v1"
)

// disksQuota is the quota that --quota-gb sets.
const disksQuota = "DISKS_TOTAL_GB"

// catalogTime is when Google made what was always there.
const catalogTime = "1969-12-31T16:00:00.000-08:00"

// diskKind is what Google documents of a type of disk.
type diskKind struct {
	description      string
	minGb, maxGb     int64
	defaultGb        int64
	iops, throughput bool
}

// diskKinds are the types of disks that every zone has.
var diskKinds = map[string]diskKind{
	"pd-standard":          {"Standard Persistent Disk", 10, 65536, 500, false, false},
	"pd-balanced":          {"Balanced Persistent Disk", 10, 65536, 100, false, false},
	"pd-ssd":               {"SSD Persistent Disk", 10, 65536, 100, false, false},
	"pd-extreme":           {"Extreme Persistent Disk", 500, 65536, 1000, true, false},
	"hyperdisk-balanced":   {"Hyperdisk Balanced", 4, 65536, 100, true, true},
	"hyperdisk-extreme":    {"Hyperdisk Extreme", 64, 65536, 1000, true, false},
	"hyperdisk-throughput": {"Hyperdisk Throughput", 2048, 32768, 2048, false, true},
}

// maxDisks is how many disks an instance of a machine type can have.
func maxDisks(machineType string) int {
	sharedCore := []string{"e2-micro", "e2-small", "e2-medium", "f1-micro", "g1-small"}
	if slices.Contains(sharedCore, machineType) {
		return 16
	}
	return 128
}

// settleType checks the type of a disk and what depends on it, and fills in what the
// type decides.
func (s *Server) settleType(disk *compute.Disk) error {
	kind, known := diskKinds[baseName(disk.Type)]
	if !known || zoneOf(disk.Type) != zoneOf(disk.Zone) {
		return errInvalid("resource.type", disk.Type, "The referenced diskType resource cannot be found.")
	}
	disk.SizeGb = firstOf(disk.SizeGb, kind.defaultGb)
	size, name := strconv.FormatInt(disk.SizeGb, 10), baseName(disk.Type)
	switch {
	case disk.SizeGb < kind.minGb:
		return errInvalid("resource.sizeGb", size, fmt.Sprintf("Disk size cannot be smaller than %d GB for disk type %s.", kind.minGb, name))
	case disk.SizeGb > kind.maxGb:
		return errInvalid("resource.sizeGb", size, fmt.Sprintf("Disk size cannot be larger than %d GB for disk type %s.", kind.maxGb, name))
	case disk.ProvisionedIops != 0 && !kind.iops:
		return errInvalid("resource.provisionedIops", strconv.FormatInt(disk.ProvisionedIops, 10),
			"Provisioned IOPS is not supported for disk type "+name+".")
	case disk.ProvisionedThroughput != 0 && !kind.throughput:
		return errInvalid("resource.provisionedThroughput", strconv.FormatInt(disk.ProvisionedThroughput, 10),
			"Provisioned throughput is not supported for disk type "+name+".")
	}
	return nil
}

// idOf is the id of what was always there: the same each time.
func idOf(path string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(path))
	return hash.Sum64() >> 1
}

func (s *Server) getProject(r *request) (any, error) {
	path := projectPath(r.project)
	return &compute.Project{
		Kind: "compute#project", Id: idOf(path), Name: r.project, CreationTimestamp: catalogTime,
		DefaultServiceAccount: strconv.FormatUint(idOf(path)>>24, 10) + "-compute@developer.gserviceaccount.com",
		SelfLink:              r.link(path),
	}, nil
}

func (s *Server) getRegion(r *request) (any, error) {
	path := projectPath(r.project) + "/regions/" + r.PathValue("region")
	region := &compute.Region{
		Kind: "compute#region", Id: idOf(path), Name: baseName(path), CreationTimestamp: catalogTime,
		Description: baseName(path), Status: "UP", SelfLink: r.link(path),
	}
	for _, zone := range s.options.Zones {
		if regionOf(zone) == region.Name {
			region.Zones = append(region.Zones, r.link(zonePath(r.project, zone)))
		}
	}
	if len(region.Zones) == 0 {
		return nil, errNotFound(path)
	}
	if s.options.QuotaGb > 0 {
		s.Lock()
		used := s.usedGb(r.project, region.Name)
		s.Unlock()
		region.Quotas = []*compute.Quota{{
			Metric: disksQuota, Limit: float64(s.options.QuotaGb), Usage: float64(used), ForceSendFields: []string{"Usage"},
		}}
	}
	return region, nil
}

func (s *Server) zone(r *request, name string) *compute.Zone {
	path := zonePath(r.project, name)
	return &compute.Zone{
		Kind: "compute#zone", Id: idOf(path), Name: name, Description: name, CreationTimestamp: catalogTime,
		Region: r.link(regionPath(r.project, name)), Status: "UP", SelfLink: r.link(path),
	}
}

func (s *Server) getZone(r *request) (any, error) { return s.zone(r, r.zone), nil }

func (s *Server) listZones(r *request) (any, error) {
	var all []listed[*compute.Zone]
	for _, name := range s.options.Zones {
		all = append(all, listed[*compute.Zone]{name: name, item: s.zone(r, name)})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	id := projectPath(r.project) + "/zones"
	return &compute.ZoneList{Kind: "compute#zoneList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
}

func diskType(r *request, name string) *compute.DiskType {
	kind, path := diskKinds[name], r.scope()+"/diskTypes/"+name
	return &compute.DiskType{
		Kind: "compute#diskType", Id: idOf(path), Name: name, Description: kind.description, CreationTimestamp: catalogTime,
		ValidDiskSize: fmt.Sprintf("%dGB-%dGB", kind.minGb, kind.maxGb), DefaultDiskSizeGb: kind.defaultGb,
		Zone: r.link(r.scope()), SelfLink: r.link(path),
	}
}

func (s *Server) getDiskType(r *request) (any, error) {
	name := r.PathValue("diskType")
	if _, known := diskKinds[name]; !known {
		return nil, errNotFound(r.scope() + "/diskTypes/" + name)
	}
	return diskType(r, name), nil
}

func (s *Server) listDiskTypes(r *request) (any, error) {
	var all []listed[*compute.DiskType]
	for name := range diskKinds {
		all = append(all, listed[*compute.DiskType]{name: name, item: diskType(r, name)})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	id := r.scope() + "/diskTypes"
	return &compute.DiskTypeList{Kind: "compute#diskTypeList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
}

// getMachineType answers for whatever type an instance was made with.
func (s *Server) getMachineType(r *request) (any, error) {
	path := r.named("machineTypes", "machineType")
	if !strings.Contains(baseName(path), "-") {
		return nil, errNotFound(path)
	}
	return &compute.MachineType{
		Kind: "compute#machineType", Id: idOf(path), Name: baseName(path), CreationTimestamp: catalogTime,
		GuestCpus: 2, MemoryMb: 8192, MaximumPersistentDisks: int64(maxDisks(baseName(path))),
		Zone: r.zone, SelfLink: r.link(path),
	}, nil
}
