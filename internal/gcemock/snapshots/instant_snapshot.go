package snapshots

import (
	"context"
	"strconv"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/disks"
	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// instantView is the instant snapshot as a client sees it.
func instantView(r *wire.Request, row compute.InstantSnapshot) *compute.InstantSnapshot {
	row.Kind = "compute#instantSnapshot"
	row.SelfLink = r.Link(row.SelfLink)
	row.SourceDisk = r.Link(row.SourceDisk)
	row.Zone = r.Link(row.Zone)
	return &row
}

func getInstantSnapshot(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	path := r.Named("instantSnapshots", "instantSnapshot")
	row, found := s.Instants.Get(path)
	if !found {
		return nil, wire.NotFound(path)
	}
	return instantView(r, row), nil
}

func listInstantSnapshots(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	id := r.Scope() + "/instantSnapshots"
	var all []wire.Listed[*compute.InstantSnapshot]
	for _, path := range s.Instants.Below(id) {
		row := s.Instants.Rows[path]
		all = append(all, wire.Listed[*compute.InstantSnapshot]{Name: row.Name, Created: row.CreationTimestamp, Item: instantView(r, row)})
	}
	items, next, err := wire.Paged(r, all)
	if err != nil {
		return nil, err
	}
	return &compute.InstantSnapshotList{
		Kind: "compute#instantSnapshotList", Id: id, Items: items, NextPageToken: next, SelfLink: r.Link(id),
	}, nil
}

// insertInstantSnapshot keeps the content of a disk beside it, in the disk's zone.
type insertInstantSnapshot struct {
	engine.Quick
	Instant compute.InstantSnapshot
	From    disks.Source
}

func newInsertInstantSnapshot(r *wire.Request) (engine.Job, error) {
	var asked compute.InstantSnapshot
	if err := r.IntoServed(&asked, "description", "labels", "name", "sourceDisk"); err != nil {
		return nil, err
	}
	return &insertInstantSnapshot{Instant: compute.InstantSnapshot{
		Name: asked.Name, Description: asked.Description, Labels: asked.Labels, LabelFingerprint: wire.FingerprintOf(asked.Labels),
		SourceDisk: wire.Reference(asked.SourceDisk, r.Project), Zone: r.Scope(), Id: wire.NewID(), Status: state.StatusCreating,
		SelfLink: r.Scope() + "/instantSnapshots/" + asked.Name,
	}}, nil
}

func (j *insertInstantSnapshot) Locks() []string { return []string{j.Instant.SelfLink, j.From.Path} }

func (j *insertInstantSnapshot) Accept(s *engine.Engine) (engine.Target, error) {
	path := j.Instant.SelfLink
	if err := wire.CheckName(j.Instant.Name); err != nil {
		return engine.Target{}, err
	}
	if err := wire.CheckLabels(j.Instant.Labels); err != nil {
		return engine.Target{}, err
	}
	if _, found := s.Instants.Get(path); found {
		return engine.Target{}, wire.Exists(path)
	}
	disk, err := s.FindReadyDisk(j.Instant.SourceDisk)
	if err != nil {
		return engine.Target{}, err
	}
	if disk.Zone != j.Instant.Zone {
		return engine.Target{}, wire.Invalid("resource.sourceDisk", j.Instant.SourceDisk, "The disk is in another zone.")
	}
	j.From = disks.Source{Path: disk.SelfLink, ID: disk.Id}
	j.Instant.SourceDiskId, j.Instant.DiskSizeGb = strconv.FormatUint(disk.Id, 10), disk.SizeGb
	j.Instant.CreationTimestamp = s.Timestamp()
	s.Instants.Put(path, j.Instant)
	return engine.Target{Path: path, ID: j.Instant.Id}, nil
}

func (j *insertInstantSnapshot) Work(_ context.Context, s *engine.Engine) error {
	return j.From.CopyTo(s, j.Instant.Id, 0)
}

func (j *insertInstantSnapshot) Finish(s *engine.Engine) {
	j.Instant.Status = state.StatusReady
	s.Instants.Put(j.Instant.SelfLink, j.Instant)
}

func (j *insertInstantSnapshot) Undo(s *engine.Engine, _ string) {
	s.Instants.Remove(j.Instant.SelfLink)
	s.RemoveContent(j.Instant.Id, j.Instant.SelfLink)
}

// deleteInstantSnapshot removes an instant snapshot. Disks made from it stay.
type deleteInstantSnapshot struct {
	engine.Quick
	Path string
	ID   uint64 `json:",string"`
}

func newDeleteInstantSnapshot(r *wire.Request) (engine.Job, error) {
	return &deleteInstantSnapshot{Path: r.Named("instantSnapshots", "instantSnapshot")}, nil
}

func (j *deleteInstantSnapshot) Locks() []string { return []string{j.Path} }

func (j *deleteInstantSnapshot) Accept(s *engine.Engine) (engine.Target, error) {
	row, found := s.Instants.Get(j.Path)
	switch {
	case !found:
		return engine.Target{}, wire.NotFound(j.Path)
	case row.Status != state.StatusReady:
		return engine.Target{}, wire.NotReady(j.Path)
	}
	j.ID = row.Id
	return engine.Target{Path: j.Path, ID: row.Id}, nil
}

func (j *deleteInstantSnapshot) Begin(s *engine.Engine, _ string) error {
	if row, found := s.Instants.Get(j.Path); !found || row.Id != j.ID {
		return wire.NotFound(j.Path)
	}
	return nil
}

func (j *deleteInstantSnapshot) Work(_ context.Context, s *engine.Engine) error {
	return s.Contents.Remove(j.ID)
}

func (j *deleteInstantSnapshot) Finish(s *engine.Engine) { s.Instants.Remove(j.Path) }
