package gcemock

import (
	"google.golang.org/api/compute/v1"
)

// diskView is the disk as a client sees it.
func diskView(r *request, row compute.Disk, users []string) *compute.Disk {
	row.Kind = "compute#disk"
	for _, link := range []*string{
		&row.Zone, &row.Region, &row.Type, &row.SelfLink, &row.StoragePool,
		&row.SourceSnapshot, &row.SourceImage, &row.SourceDisk, &row.SourceInstantSnapshot,
	} {
		*link = r.link(*link)
	}
	row.ReplicaZones = r.links(row.ReplicaZones)
	row.Users = r.links(users)
	return &row
}

func getDisk(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	row, err := s.findDisk(r.named("disks", "disk"))
	if err != nil {
		return nil, err
	}
	return diskView(r, row, s.usersByDisk()[row.SelfLink]), nil
}

// disksBelow lists the disks of a zone, or of a whole project.
func disksBelow(s *Engine, r *request, scope string) []listed[*compute.Disk] {
	users := s.usersByDisk()
	var all []listed[*compute.Disk]
	for _, path := range s.disks.below(scope) {
		row := s.disks.rows[path]
		all = append(all, listed[*compute.Disk]{
			scope: scopeOf(path), name: row.Name, created: row.CreationTimestamp, item: diskView(r, row, users[path]),
		})
	}
	return all
}

func listDisks(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	items, next, err := paged(r, disksBelow(s, r, r.scope()))
	if err != nil {
		return nil, err
	}
	id := r.scope() + "/disks"
	return &compute.DiskList{Kind: "compute#diskList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
}

func aggregateDisks(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	items, next, err := paged(r, disksBelow(s, r, projectPath(r.project)))
	if err != nil {
		return nil, err
	}
	id := projectPath(r.project) + "/aggregated/disks"
	answer := &compute.DiskAggregatedList{
		Kind: "compute#diskAggregatedList", Id: id, NextPageToken: next, SelfLink: r.link(id),
		Items: map[string]compute.DisksScopedList{},
	}
	for _, scope := range s.options.Places.scopes() {
		var here compute.DisksScopedList
		for _, item := range items {
			if scopeOf(reference(item.SelfLink, r.project)) == scope {
				here.Disks = append(here.Disks, item)
			}
		}
		if here.Disks == nil {
			here.Warning = &compute.DisksScopedListWarning{
				Code: noResults, Message: noResultsMessage(scope),
				Data: []*compute.DisksScopedListWarningData{{Key: "scope", Value: scope}},
			}
		}
		answer.Items[scope] = here
	}
	return answer, nil
}
