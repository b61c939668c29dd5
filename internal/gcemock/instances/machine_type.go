package instances

import (
	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

func machineType(r *wire.Request, zone, name string) *compute.MachineType {
	kind, _ := machineKindOf(name)
	path := wire.ZonePath(r.Project, zone) + "/machineTypes/" + name
	return &compute.MachineType{
		Kind: "compute#machineType", Id: wire.IDOf(path), Name: name, CreationTimestamp: wire.CatalogTime,
		GuestCpus: kind.cpus, MemoryMb: kind.memoryMb, IsSharedCpu: kind.isSharedCore,
		MaximumPersistentDisks: int64(kind.maxDisks), Zone: zone, SelfLink: r.Link(path),
		ForceSendFields: []string{"IsSharedCpu"},
	}
}

func getMachineType(_ *engine.Engine, r *wire.Request) (any, error) {
	path := r.Named("machineTypes", "machineType")
	if _, known := machineKindOf(wire.BaseName(path)); !known {
		return nil, wire.NotFound(path)
	}
	return machineType(r, r.Zone, wire.BaseName(path)), nil
}

func machineTypesIn(r *wire.Request, zone string) (all []wire.Listed[*compute.MachineType]) {
	for _, name := range machineTypes() {
		all = append(all, wire.Listed[*compute.MachineType]{
			Scope: "zones/" + zone, Name: name, Created: wire.CatalogTime, Item: machineType(r, zone, name),
		})
	}
	return all
}

func listMachineTypes(_ *engine.Engine, r *wire.Request) (any, error) {
	return wire.List(r, "machineTypeList", r.Scope()+"/machineTypes", machineTypesIn(r, r.Zone))
}

func aggregateMachineTypes(s *engine.Engine, r *wire.Request) (any, error) {
	var all []wire.Listed[*compute.MachineType]
	for _, zone := range s.Options.Locations.Zones {
		all = append(all, machineTypesIn(r, zone)...)
	}
	return wire.AggregatedList(r, "machineTypeAggregatedList", "machineTypes", s.Options.Locations.ZoneScopes(), all)
}
