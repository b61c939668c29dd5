// Package disks serves zonal and regional disks, their types, and storage pools. It lists and reads
// them, and has the jobs that insert, delete, resize, update and label them. It knows the limits
// that Google documents of each type, and what a disk can be made from.
//
// It never attaches a disk: package instances does.
package disks

import (
	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// diskView is the disk as a client sees it. What was input only, such as its tags, is left out.
func diskView(r *wire.Request, row compute.Disk, users []string) *compute.Disk {
	row.Kind, row.Params = "compute#disk", nil
	for _, link := range []*string{
		&row.Zone, &row.Region, &row.Type, &row.SelfLink, &row.StoragePool,
		&row.SourceSnapshot, &row.SourceImage, &row.SourceDisk, &row.SourceInstantSnapshot,
	} {
		*link = r.Link(*link)
	}
	row.ReplicaZones = r.Links(row.ReplicaZones)
	row.Users = r.Links(users)
	return &row
}

func getDisk(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	row, err := s.FindDisk(r.Named("disks", "disk"))
	if err != nil {
		return nil, err
	}
	return diskView(r, row, s.UsersByDisk()[row.SelfLink]), nil
}

// disksBelow lists the disks of a zone, or of a whole project.
func disksBelow(s *engine.Engine, r *wire.Request, scope string) []wire.Listed[*compute.Disk] {
	users := s.UsersByDisk()
	var all []wire.Listed[*compute.Disk]
	for _, path := range s.Disks.Below(scope) {
		row := s.Disks.Rows[path]
		all = append(all, wire.Listed[*compute.Disk]{
			Scope: wire.ScopeOf(path), Name: row.Name, Created: row.CreationTimestamp, Item: diskView(r, row, users[path]),
		})
	}
	return all
}

func listDisks(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	return wire.List(r, "diskList", r.Scope()+"/disks", disksBelow(s, r, r.Scope()))
}

func aggregateDisks(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	return wire.AggregatedList(r, "diskAggregatedList", "disks", s.Options.Locations.Scopes(), disksBelow(s, r, wire.ProjectPath(r.Project)))
}
