package disks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// diskType is a type of disks as a client sees it in a scope, such as zones/<zone>.
func diskType(r *wire.Request, scope, name string) *compute.DiskType {
	kind, location := diskKinds[name], wire.ProjectPath(r.Project)+"/"+scope
	path := location + "/diskTypes/" + name
	view := &compute.DiskType{
		Kind: "compute#diskType", Id: wire.IDOf(path), Name: name, Description: kind.description, CreationTimestamp: wire.CatalogTime,
		ValidDiskSize: fmt.Sprintf("%dGB-%dGB", kind.minGb, kind.maxGb), DefaultDiskSizeGb: kind.defaultGb, SelfLink: r.Link(path),
	}
	if strings.HasPrefix(scope, "zones/") {
		view.Zone = r.Link(location)
	} else {
		view.Region = r.Link(location)
		view.ValidDiskSize = fmt.Sprintf("%dGB-%dGB", kind.regionalMinGb, kind.maxGb)
	}
	return view
}

// diskTypesIn are the types of disks of a scope.
func diskTypesIn(r *wire.Request, scope string) (all []wire.Listed[*compute.DiskType]) {
	for _, name := range slices.Sorted(maps.Keys(diskKinds)) {
		if diskKinds[name].isIn(scope) {
			all = append(all, wire.Listed[*compute.DiskType]{
				Scope: scope, Name: name, Created: wire.CatalogTime, Item: diskType(r, scope, name),
			})
		}
	}
	return all
}

func getDiskType(_ *engine.Engine, r *wire.Request) (any, error) {
	path := r.Named("diskTypes", "diskType")
	if kind, known := diskKinds[wire.BaseName(path)]; !known || !kind.isIn(wire.ScopeOf(path)) {
		return nil, wire.NotFound(path)
	}
	return diskType(r, wire.ScopeOf(path), wire.BaseName(path)), nil
}

func listDiskTypes(_ *engine.Engine, r *wire.Request) (any, error) {
	id := r.Scope() + "/diskTypes"
	kind := "diskTypeList"
	if r.Region != "" {
		kind = "regionDiskTypeList"
	}
	return wire.List(r, kind, id, diskTypesIn(r, wire.ScopeOf(id)))
}

func aggregateDiskTypes(s *engine.Engine, r *wire.Request) (any, error) {
	var all []wire.Listed[*compute.DiskType]
	for _, scope := range s.Options.Locations.Scopes() {
		all = append(all, diskTypesIn(r, scope)...)
	}
	return wire.AggregatedList(r, "diskTypeAggregatedList", "diskTypes", s.Options.Locations.Scopes(), all)
}
