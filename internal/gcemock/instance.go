package gcemock

import (
	"cmp"
	"slices"

	"google.golang.org/api/compute/v1"
)

// instanceView is the instance as a client sees it.
func instanceView(s *Engine, r *request, row compute.Instance) *compute.Instance {
	attached := s.attachedTo(row.SelfLink)
	row.Kind = "compute#instance"
	slices.SortFunc(attached, func(a, b attachment) int { return cmp.Compare(a.Index, b.Index) })
	for _, one := range attached {
		if one.Taken == "" {
			row.Disks = append(row.Disks, attachedDisk(r, one, s.disks.rows[one.Disk].SizeGb))
		}
	}
	row.Zone = r.link(row.Zone)
	row.MachineType = r.link(row.MachineType)
	row.SelfLink = r.link(row.SelfLink)
	return &row
}

func getInstance(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	row, err := s.findInstance(r.named("instances", "instance"))
	if err != nil {
		return nil, err
	}
	return instanceView(s, r, row), nil
}

// instancesBelow lists the instances of a zone, or of a whole project.
func instancesBelow(s *Engine, r *request, scope string) []listed[*compute.Instance] {
	var all []listed[*compute.Instance]
	for _, path := range s.instances.below(scope) {
		row := s.instances.rows[path]
		all = append(all, listed[*compute.Instance]{
			scope: zoneOf(path), name: row.Name, created: row.CreationTimestamp, item: instanceView(s, r, row),
		})
	}
	return all
}

func listInstances(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	items, next, err := paged(r, instancesBelow(s, r, r.scope()))
	if err != nil {
		return nil, err
	}
	id := r.scope() + "/instances"
	return &compute.InstanceList{
		Kind: "compute#instanceList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id),
	}, nil
}

func aggregateInstances(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	items, next, err := paged(r, instancesBelow(s, r, projectPath(r.project)))
	if err != nil {
		return nil, err
	}
	id := projectPath(r.project) + "/aggregated/instances"
	answer := &compute.InstanceAggregatedList{
		Kind: "compute#instanceAggregatedList", Id: id, NextPageToken: next, SelfLink: r.link(id),
		Items: map[string]compute.InstancesScopedList{},
	}
	for _, zone := range s.options.Places.Zones {
		var here compute.InstancesScopedList
		for _, item := range items {
			if baseName(item.Zone) == zone {
				here.Instances = append(here.Instances, item)
			}
		}
		if here.Instances == nil {
			here.Warning = &compute.InstancesScopedListWarning{
				Code: noResults, Message: noResultsMessage("zones/" + zone),
				Data: []*compute.InstancesScopedListWarningData{{Key: "scope", Value: "zones/" + zone}},
			}
		}
		answer.Items["zones/"+zone] = here
	}
	return answer, nil
}

func setStatus(s *Engine, instance, status string) {
	row, _ := s.instances.get(instance)
	row.Status = status
	switch status {
	case statusTerminated:
		row.LastStopTimestamp = s.timestamp()
	case statusInstanceRunning:
		row.LastStartTimestamp = s.timestamp()
	}
	s.instances.put(instance, row)
}

// attachedDisk is the attachment as a client sees it in its instance.
func attachedDisk(r *request, row attachment, sizeGb int64) *compute.AttachedDisk {
	return &compute.AttachedDisk{
		Kind: "compute#attachedDisk", Type: "PERSISTENT", Interface: scsi,
		Source: r.link(row.Disk), DeviceName: row.DeviceName, Mode: row.Mode,
		Boot: row.Boot, AutoDelete: row.AutoDelete, Index: row.Index, DiskSizeGb: sizeGb,
		ForceSendFields: []string{"Boot", "AutoDelete", "Index"},
	}
}
