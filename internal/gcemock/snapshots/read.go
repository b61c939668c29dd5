package snapshots

import (
	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// view is the resource as a client sees it.
func (k *kind[T]) view(r *wire.Request, row T) *T {
	of := k.fields(&row)
	*of.kind = "compute#" + k.name
	links := append([]*string{of.path}, of.sources...)
	if of.zone != nil {
		links = append(links, of.zone)
	}
	for _, link := range links {
		*link = r.Link(*link)
	}
	return &row
}

func (k *kind[T]) get(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	path := r.Named(k.name+"s", k.name)
	row, found := k.table(s).Get(path)
	if !found {
		return nil, wire.NotFound(path)
	}
	return k.view(r, row), nil
}

func (k *kind[T]) list(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	id := r.Scope() + "/" + k.name + "s"
	var all []wire.Listed[*T]
	for _, path := range k.table(s).Below(id) {
		row := k.table(s).Rows[path]
		of := k.fields(&row)
		all = append(all, wire.Listed[*T]{Name: *of.name, Created: *of.created, Item: k.view(r, row)})
	}
	return wire.List(r, k.name+"List", id, all)
}

// getImageFromFamily answers with the newest image of a family that is ready.
func getImageFromFamily(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	path := r.Named("images/family", images.name)
	row, found := s.FindImage(path)
	if !found {
		return nil, wire.NotFound(path)
	}
	return images.view(r, row), nil
}

// completeSnapshot takes the disk of a createSnapshot from the path of the call.
func completeSnapshot(r *wire.Request, row *compute.Snapshot) {
	if r.PathValue("disk") != "" {
		row.SourceDisk, row.SourceInstantSnapshot = r.Named("disks", "disk"), ""
	}
	if row.SnapshotType == "" {
		row.SnapshotType = "STANDARD"
	}
}
