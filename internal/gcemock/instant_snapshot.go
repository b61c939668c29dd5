package gcemock

import (
	"context"
	"strconv"

	"google.golang.org/api/compute/v1"
)

// instantView is the instant snapshot as a client sees it.
func instantView(r *request, row compute.InstantSnapshot) *compute.InstantSnapshot {
	row.Kind = "compute#instantSnapshot"
	row.SelfLink = r.link(row.SelfLink)
	row.SourceDisk = r.link(row.SourceDisk)
	row.Zone = r.link(row.Zone)
	return &row
}

func getInstantSnapshot(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	path := r.named("instantSnapshots", "instantSnapshot")
	row, found := s.instants.get(path)
	if !found {
		return nil, errNotFound(path)
	}
	return instantView(r, row), nil
}

func listInstantSnapshots(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	id := r.scope() + "/instantSnapshots"
	var all []listed[*compute.InstantSnapshot]
	for _, path := range s.instants.below(id) {
		row := s.instants.rows[path]
		all = append(all, listed[*compute.InstantSnapshot]{name: row.Name, created: row.CreationTimestamp, item: instantView(r, row)})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	return &compute.InstantSnapshotList{
		Kind: "compute#instantSnapshotList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id),
	}, nil
}

// insertInstantSnapshot keeps the content of a disk beside it, in the disk's zone.
type insertInstantSnapshot struct {
	quick
	Instant compute.InstantSnapshot
	From    source
}

func newInsertInstantSnapshot(r *request) (job, error) {
	var asked compute.InstantSnapshot
	if err := r.intoServed(&asked, "description", "labels", "name", "sourceDisk"); err != nil {
		return nil, err
	}
	return &insertInstantSnapshot{Instant: compute.InstantSnapshot{
		Name: asked.Name, Description: asked.Description, Labels: asked.Labels, LabelFingerprint: fingerprintOf(asked.Labels),
		SourceDisk: reference(asked.SourceDisk, r.project), Zone: r.scope(), Id: newID(), Status: statusCreating,
		SelfLink: r.scope() + "/instantSnapshots/" + asked.Name,
	}}, nil
}

func (j *insertInstantSnapshot) Locks() []string { return []string{j.Instant.SelfLink, j.From.Path} }

func (j *insertInstantSnapshot) Accept(s *Engine) (target, error) {
	path := j.Instant.SelfLink
	if err := checkName(j.Instant.Name); err != nil {
		return target{}, err
	}
	if err := checkLabels(j.Instant.Labels); err != nil {
		return target{}, err
	}
	if _, found := s.instants.get(path); found {
		return target{}, errExists(path)
	}
	disk, err := s.findReadyDisk(j.Instant.SourceDisk)
	if err != nil {
		return target{}, err
	}
	if disk.Zone != j.Instant.Zone {
		return target{}, errInvalid("resource.sourceDisk", j.Instant.SourceDisk, "The disk is in another zone.")
	}
	j.From = source{Path: disk.SelfLink, ID: disk.Id}
	j.Instant.SourceDiskId, j.Instant.DiskSizeGb = strconv.FormatUint(disk.Id, 10), disk.SizeGb
	j.Instant.CreationTimestamp = s.timestamp()
	s.instants.put(path, j.Instant)
	return target{path: path, id: j.Instant.Id}, nil
}

func (j *insertInstantSnapshot) Work(_ context.Context, s *Engine) error {
	return j.From.copyTo(s, j.Instant.Id, 0)
}

func (j *insertInstantSnapshot) Finish(s *Engine) {
	j.Instant.Status = statusReady
	s.instants.put(j.Instant.SelfLink, j.Instant)
}

func (j *insertInstantSnapshot) Undo(s *Engine, _ string) {
	s.instants.remove(j.Instant.SelfLink)
	s.removeContent(j.Instant.Id, j.Instant.SelfLink)
}

// deleteInstantSnapshot removes an instant snapshot. Disks made from it stay.
type deleteInstantSnapshot struct {
	quick
	Path string
	ID   uint64 `json:",string"`
}

func newDeleteInstantSnapshot(r *request) (job, error) {
	return &deleteInstantSnapshot{Path: r.named("instantSnapshots", "instantSnapshot")}, nil
}

func (j *deleteInstantSnapshot) Locks() []string { return []string{j.Path} }

func (j *deleteInstantSnapshot) Accept(s *Engine) (target, error) {
	row, found := s.instants.get(j.Path)
	switch {
	case !found:
		return target{}, errNotFound(j.Path)
	case row.Status != statusReady:
		return target{}, errNotReady(j.Path)
	}
	j.ID = row.Id
	return target{path: j.Path, id: row.Id}, nil
}

func (j *deleteInstantSnapshot) Begin(s *Engine, _ string) error {
	if row, found := s.instants.get(j.Path); !found || row.Id != j.ID {
		return errNotFound(j.Path)
	}
	return nil
}

func (j *deleteInstantSnapshot) Work(_ context.Context, s *Engine) error {
	return s.contents.remove(j.ID)
}

func (j *deleteInstantSnapshot) Finish(s *Engine) { s.instants.remove(j.Path) }
