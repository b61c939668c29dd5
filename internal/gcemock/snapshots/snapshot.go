// Package snapshots serves what is copied from disks: snapshots, instant snapshots and
// images. It lists and reads them, and has the jobs that insert and delete them.
//
// It never makes a disk from a copy: package disks does.
package snapshots

import (
	"cmp"
	"context"
	"strconv"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/disks"
	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// snapshotView is the snapshot as a client sees it.
func snapshotView(r *wire.Request, row compute.Snapshot) *compute.Snapshot {
	row.Kind = "compute#snapshot"
	row.SelfLink = r.Link(row.SelfLink)
	row.SourceDisk = r.Link(row.SourceDisk)
	row.SourceInstantSnapshot = r.Link(row.SourceInstantSnapshot)
	return &row
}

func getSnapshot(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	path := r.Named("snapshots", "snapshot")
	row, found := s.Snapshots.Get(path)
	if !found {
		return nil, wire.NotFound(path)
	}
	return snapshotView(r, row), nil
}

func listSnapshots(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	id := r.Scope() + "/snapshots"
	var all []wire.Listed[*compute.Snapshot]
	for _, path := range s.Snapshots.Below(id) {
		row := s.Snapshots.Rows[path]
		all = append(all, wire.Listed[*compute.Snapshot]{Name: row.Name, Created: row.CreationTimestamp, Item: snapshotView(r, row)})
	}
	items, next, err := wire.Paged(r, all)
	if err != nil {
		return nil, err
	}
	return &compute.SnapshotList{
		Kind: "compute#snapshotList", Id: id, Items: items, NextPageToken: next, SelfLink: r.Link(id),
	}, nil
}

// insertSnapshot keeps the contents of a disk.
type insertSnapshot struct {
	Snapshot compute.Snapshot
	From     disks.Source
}

// servedOfSnapshots are the fields of a new snapshot that are kept.
var servedOfSnapshots = []string{
	"description", "labels", "name", "snapshotType", "sourceDisk", "sourceInstantSnapshot", "storageLocations",
}

// newCreateSnapshot reads the request that names the disk in its path.
func newCreateSnapshot(r *wire.Request) (engine.Job, error) {
	var asked compute.Snapshot
	if err := r.IntoServed(&asked, servedOfSnapshots...); err != nil {
		return nil, err
	}
	asked.SourceDisk, asked.SourceInstantSnapshot = r.Named("disks", "disk"), ""
	return snapshotJob(r, asked), nil
}

// newInsertSnapshot reads the request that names it in its body.
func newInsertSnapshot(r *wire.Request) (engine.Job, error) {
	var asked compute.Snapshot
	if err := r.IntoServed(&asked, servedOfSnapshots...); err != nil {
		return nil, err
	}
	return snapshotJob(r, asked), nil
}

func snapshotJob(r *wire.Request, asked compute.Snapshot) *insertSnapshot {
	path := wire.ProjectPath(r.Project) + "/global/snapshots/" + asked.Name
	return &insertSnapshot{Snapshot: compute.Snapshot{
		Name: asked.Name, Description: asked.Description, Labels: asked.Labels,
		LabelFingerprint: wire.FingerprintOf(asked.Labels), SourceDisk: wire.Reference(asked.SourceDisk, r.Project),
		SourceInstantSnapshot: wire.Reference(asked.SourceInstantSnapshot, r.Project),
		StorageLocations:      asked.StorageLocations, SnapshotType: cmp.Or(asked.SnapshotType, "STANDARD"),
		Id: wire.NewID(), SelfLink: path, Status: state.StatusCreating,
	}}
}

func (j *insertSnapshot) Locks() []string {
	return []string{j.From.Path, j.Snapshot.SelfLink}
}

func (j *insertSnapshot) Accept(s *engine.Engine) (engine.Target, error) {
	if err := wire.CheckName(j.Snapshot.Name); err != nil {
		return engine.Target{}, err
	}
	if err := wire.CheckLabels(j.Snapshot.Labels); err != nil {
		return engine.Target{}, err
	}
	if _, found := s.Snapshots.Get(j.Snapshot.SelfLink); found {
		return engine.Target{}, wire.Exists(j.Snapshot.SelfLink)
	}
	if err := j.takeSource(s); err != nil {
		return engine.Target{}, err
	}
	j.Snapshot.CreationTimestamp = s.Timestamp()
	s.Snapshots.Put(j.Snapshot.SelfLink, j.Snapshot)
	return engine.Target{Path: j.Snapshot.SelfLink, ID: j.Snapshot.Id}, nil
}

// takeSource finds the disk or instant snapshot that the snapshot is made from.
func (j *insertSnapshot) takeSource(s *engine.Engine) error {
	if path := j.Snapshot.SourceInstantSnapshot; path != "" {
		instant, found := s.Instants.Get(path)
		switch {
		case j.Snapshot.SourceDisk != "":
			return wire.Invalid("resource", j.Snapshot.Name, "A snapshot has one source.")
		case !found:
			return wire.NotFound(path)
		case instant.Status != state.StatusReady:
			return wire.NotReady(path)
		}
		j.From = disks.Source{Path: path, ID: instant.Id}
		j.Snapshot.SourceInstantSnapshotId = strconv.FormatUint(instant.Id, 10)
		j.Snapshot.SourceDisk, j.Snapshot.SourceDiskId = instant.SourceDisk, instant.SourceDiskId
		j.Snapshot.DiskSizeGb = instant.DiskSizeGb
		return nil
	}
	disk, err := s.FindReadyDisk(j.Snapshot.SourceDisk)
	if err != nil {
		return err
	}
	j.From = disks.Source{Path: disk.SelfLink, ID: disk.Id}
	j.Snapshot.SourceDiskId, j.Snapshot.DiskSizeGb = strconv.FormatUint(disk.Id, 10), disk.SizeGb
	return nil
}

func (j *insertSnapshot) Begin(s *engine.Engine, _ string) error {
	uploading := j.Snapshot
	uploading.Status = state.StatusUploading
	s.Snapshots.Put(j.Snapshot.SelfLink, uploading)
	return nil
}

func (j *insertSnapshot) Work(_ context.Context, s *engine.Engine) error {
	return j.From.CopyTo(s, j.Snapshot.Id, 0)
}

func (j *insertSnapshot) Finish(s *engine.Engine) {
	j.Snapshot.Status = state.StatusReady
	j.Snapshot.StorageBytes = s.Contents.Stored(j.Snapshot.Id)
	j.Snapshot.StorageBytesStatus = "UP_TO_DATE"
	s.Snapshots.Put(j.Snapshot.SelfLink, j.Snapshot)
}

func (j *insertSnapshot) Undo(s *engine.Engine, _ string) {
	s.Snapshots.Remove(j.Snapshot.SelfLink)
	s.RemoveContent(j.Snapshot.Id, j.Snapshot.SelfLink)
}

// deleteSnapshot removes a snapshot. Disks made from it stay.
type deleteSnapshot struct {
	engine.Quick
	Path string
	ID   uint64 `json:",string"`
}

func newDeleteSnapshot(r *wire.Request) (engine.Job, error) {
	return &deleteSnapshot{Path: r.Named("snapshots", "snapshot")}, nil
}

func (j *deleteSnapshot) Locks() []string { return []string{j.Path} }

func (j *deleteSnapshot) Accept(s *engine.Engine) (engine.Target, error) {
	row, found := s.Snapshots.Get(j.Path)
	if !found {
		return engine.Target{}, wire.NotFound(j.Path)
	}
	if row.Status != state.StatusReady {
		return engine.Target{}, wire.NotReady(j.Path)
	}
	j.ID = row.Id
	return engine.Target{Path: j.Path, ID: row.Id}, nil
}

func (j *deleteSnapshot) Begin(s *engine.Engine, _ string) error {
	if row, found := s.Snapshots.Get(j.Path); !found || row.Id != j.ID {
		return wire.NotFound(j.Path)
	}
	return nil
}

func (j *deleteSnapshot) Work(_ context.Context, s *engine.Engine) error {
	return s.Contents.Remove(j.ID)
}

func (j *deleteSnapshot) Finish(s *engine.Engine) { s.Snapshots.Remove(j.Path) }
