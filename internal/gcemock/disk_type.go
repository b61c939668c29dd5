package gcemock

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
)

// diskType is a type of disks as a client sees it in a scope, such as zones/<zone>.
func diskType(r *request, scope, name string) *compute.DiskType {
	kind, place := diskKinds[name], projectPath(r.project)+"/"+scope
	path := place + "/diskTypes/" + name
	view := &compute.DiskType{
		Kind: "compute#diskType", Id: idOf(path), Name: name, Description: kind.description, CreationTimestamp: catalogTime,
		ValidDiskSize: fmt.Sprintf("%dGB-%dGB", kind.minGb, kind.maxGb), DefaultDiskSizeGb: kind.defaultGb, SelfLink: r.link(path),
	}
	if strings.HasPrefix(scope, "zones/") {
		view.Zone = r.link(place)
	} else {
		view.Region = r.link(place)
		view.ValidDiskSize = fmt.Sprintf("%dGB-%dGB", kind.regionalMinGb, kind.maxGb)
	}
	return view
}

// diskTypesIn are the types of disks of a scope.
func diskTypesIn(r *request, scope string) (all []listed[*compute.DiskType]) {
	for _, name := range slices.Sorted(maps.Keys(diskKinds)) {
		if diskKinds[name].isIn(scope) {
			all = append(all, listed[*compute.DiskType]{
				scope: scope, name: name, created: catalogTime, item: diskType(r, scope, name),
			})
		}
	}
	return all
}

func getDiskType(s *Engine, r *request) (any, error) {
	path := r.named("diskTypes", "diskType")
	if kind, known := diskKinds[baseName(path)]; !known || !kind.isIn(scopeOf(path)) {
		return nil, errNotFound(path)
	}
	return diskType(r, scopeOf(path), baseName(path)), nil
}

func listDiskTypes(s *Engine, r *request) (any, error) {
	id := r.scope() + "/diskTypes"
	items, next, err := paged(r, diskTypesIn(r, scopeOf(id)))
	if err != nil {
		return nil, err
	}
	if r.region != "" {
		return &compute.RegionDiskTypeList{Kind: "compute#regionDiskTypeList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
	}
	return &compute.DiskTypeList{Kind: "compute#diskTypeList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
}

func aggregateDiskTypes(s *Engine, r *request) (any, error) {
	var all []listed[*compute.DiskType]
	for _, scope := range s.options.Places.scopes() {
		all = append(all, diskTypesIn(r, scope)...)
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	id := projectPath(r.project) + "/aggregated/diskTypes"
	answer := &compute.DiskTypeAggregatedList{
		Kind: "compute#diskTypeAggregatedList", Id: id, NextPageToken: next, SelfLink: r.link(id),
		Items: map[string]compute.DiskTypesScopedList{},
	}
	for _, scope := range s.options.Places.scopes() {
		var here compute.DiskTypesScopedList
		for _, item := range items {
			if scopeOf(reference(item.SelfLink, r.project)) == scope {
				here.DiskTypes = append(here.DiskTypes, item)
			}
		}
		if here.DiskTypes == nil {
			here.Warning = &compute.DiskTypesScopedListWarning{
				Code: noResults, Message: noResultsMessage(scope),
				Data: []*compute.DiskTypesScopedListWarningData{{Key: "scope", Value: scope}},
			}
		}
		answer.Items[scope] = here
	}
	return answer, nil
}
