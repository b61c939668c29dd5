package gcemock

import (
	"google.golang.org/api/compute/v1"
)

func machineType(r *request, zone, name string) *compute.MachineType {
	kind, _ := machineKindOf(name)
	path := zonePath(r.project, zone) + "/machineTypes/" + name
	return &compute.MachineType{
		Kind: "compute#machineType", Id: idOf(path), Name: name, CreationTimestamp: catalogTime,
		GuestCpus: kind.cpus, MemoryMb: kind.memoryMb, IsSharedCpu: kind.isSharedCore,
		MaximumPersistentDisks: int64(kind.maxDisks), Zone: zone, SelfLink: r.link(path),
		ForceSendFields: []string{"IsSharedCpu"},
	}
}

func getMachineType(s *Engine, r *request) (any, error) {
	path := r.named("machineTypes", "machineType")
	if _, known := machineKindOf(baseName(path)); !known {
		return nil, errNotFound(path)
	}
	return machineType(r, r.zone, baseName(path)), nil
}

func machineTypesIn(r *request, zone string) (all []listed[*compute.MachineType]) {
	for _, name := range machineTypes() {
		all = append(all, listed[*compute.MachineType]{
			scope: "zones/" + zone, name: name, created: catalogTime, item: machineType(r, zone, name),
		})
	}
	return all
}

func listMachineTypes(s *Engine, r *request) (any, error) {
	items, next, err := paged(r, machineTypesIn(r, r.zone))
	if err != nil {
		return nil, err
	}
	id := r.scope() + "/machineTypes"
	return &compute.MachineTypeList{Kind: "compute#machineTypeList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
}

func aggregateMachineTypes(s *Engine, r *request) (any, error) {
	var all []listed[*compute.MachineType]
	for _, zone := range s.options.Places.Zones {
		all = append(all, machineTypesIn(r, zone)...)
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	id := projectPath(r.project) + "/aggregated/machineTypes"
	answer := &compute.MachineTypeAggregatedList{
		Kind: "compute#machineTypeAggregatedList", Id: id, NextPageToken: next, SelfLink: r.link(id),
		Items: map[string]compute.MachineTypesScopedList{},
	}
	for _, zone := range s.options.Places.Zones {
		var here compute.MachineTypesScopedList
		for _, item := range items {
			if item.Zone == zone {
				here.MachineTypes = append(here.MachineTypes, item)
			}
		}
		if here.MachineTypes == nil {
			here.Warning = &compute.MachineTypesScopedListWarning{
				Code: noResults, Message: noResultsMessage("zones/" + zone),
				Data: []*compute.MachineTypesScopedListWarningData{{Key: "scope", Value: "zones/" + zone}},
			}
		}
		answer.Items["zones/"+zone] = here
	}
	return answer, nil
}
