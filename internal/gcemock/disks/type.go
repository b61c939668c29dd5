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
	kind, place := diskKinds[name], wire.ProjectPath(r.Project)+"/"+scope
	path := place + "/diskTypes/" + name
	view := &compute.DiskType{
		Kind: "compute#diskType", Id: wire.IDOf(path), Name: name, Description: kind.description, CreationTimestamp: wire.CatalogTime,
		ValidDiskSize: fmt.Sprintf("%dGB-%dGB", kind.minGb, kind.maxGb), DefaultDiskSizeGb: kind.defaultGb, SelfLink: r.Link(path),
	}
	if strings.HasPrefix(scope, "zones/") {
		view.Zone = r.Link(place)
	} else {
		view.Region = r.Link(place)
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
	items, next, err := wire.Paged(r, diskTypesIn(r, wire.ScopeOf(id)))
	if err != nil {
		return nil, err
	}
	if r.Region != "" {
		return &compute.RegionDiskTypeList{Kind: "compute#regionDiskTypeList", Id: id, Items: items, NextPageToken: next, SelfLink: r.Link(id)}, nil
	}
	return &compute.DiskTypeList{Kind: "compute#diskTypeList", Id: id, Items: items, NextPageToken: next, SelfLink: r.Link(id)}, nil
}

func aggregateDiskTypes(s *engine.Engine, r *wire.Request) (any, error) {
	var all []wire.Listed[*compute.DiskType]
	for _, scope := range s.Options.Places.Scopes() {
		all = append(all, diskTypesIn(r, scope)...)
	}
	items, next, err := wire.Paged(r, all)
	if err != nil {
		return nil, err
	}
	id := wire.ProjectPath(r.Project) + "/aggregated/diskTypes"
	answer := &compute.DiskTypeAggregatedList{
		Kind: "compute#diskTypeAggregatedList", Id: id, NextPageToken: next, SelfLink: r.Link(id),
		Items: map[string]compute.DiskTypesScopedList{},
	}
	for _, scope := range s.Options.Places.Scopes() {
		var here compute.DiskTypesScopedList
		for _, item := range items {
			if wire.ScopeOf(wire.Reference(item.SelfLink, r.Project)) == scope {
				here.DiskTypes = append(here.DiskTypes, item)
			}
		}
		if here.DiskTypes == nil {
			here.Warning = &compute.DiskTypesScopedListWarning{
				Code: wire.NoResults, Message: wire.NoResultsMessage(scope),
				Data: []*compute.DiskTypesScopedListWarningData{{Key: "scope", Value: scope}},
			}
		}
		answer.Items[scope] = here
	}
	return answer, nil
}
