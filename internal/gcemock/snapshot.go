package gcemock

import (
	"cmp"
	"context"
	"strconv"

	"google.golang.org/api/compute/v1"
)

// snapshotView is the snapshot as a client sees it.
func snapshotView(r *request, row compute.Snapshot) *compute.Snapshot {
	row.Kind = "compute#snapshot"
	row.SelfLink = r.link(row.SelfLink)
	row.SourceDisk = r.link(row.SourceDisk)
	row.SourceInstantSnapshot = r.link(row.SourceInstantSnapshot)
	return &row
}

func getSnapshot(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	path := r.named("snapshots", "snapshot")
	row, found := s.snapshots.get(path)
	if !found {
		return nil, errNotFound(path)
	}
	return snapshotView(r, row), nil
}

func listSnapshots(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	id := r.scope() + "/snapshots"
	var all []listed[*compute.Snapshot]
	for _, path := range s.snapshots.below(id) {
		row := s.snapshots.rows[path]
		all = append(all, listed[*compute.Snapshot]{name: row.Name, created: row.CreationTimestamp, item: snapshotView(r, row)})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	return &compute.SnapshotList{
		Kind: "compute#snapshotList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id),
	}, nil
}

// insertSnapshot keeps the contents of a disk.
type insertSnapshot struct {
	Snapshot compute.Snapshot
	From     source
}

// servedOfSnapshots are the fields of a new snapshot that are kept.
var servedOfSnapshots = []string{
	"description", "labels", "name", "snapshotType", "sourceDisk", "sourceInstantSnapshot", "storageLocations",
}

// newCreateSnapshot reads the request that names the disk in its path.
func newCreateSnapshot(r *request) (job, error) {
	var asked compute.Snapshot
	if err := r.intoServed(&asked, servedOfSnapshots...); err != nil {
		return nil, err
	}
	asked.SourceDisk, asked.SourceInstantSnapshot = r.named("disks", "disk"), ""
	return snapshotJob(r, asked), nil
}

// newInsertSnapshot reads the request that names it in its body.
func newInsertSnapshot(r *request) (job, error) {
	var asked compute.Snapshot
	if err := r.intoServed(&asked, servedOfSnapshots...); err != nil {
		return nil, err
	}
	return snapshotJob(r, asked), nil
}

func snapshotJob(r *request, asked compute.Snapshot) *insertSnapshot {
	path := projectPath(r.project) + "/global/snapshots/" + asked.Name
	return &insertSnapshot{Snapshot: compute.Snapshot{
		Name: asked.Name, Description: asked.Description, Labels: asked.Labels,
		LabelFingerprint: fingerprintOf(asked.Labels), SourceDisk: reference(asked.SourceDisk, r.project),
		SourceInstantSnapshot: reference(asked.SourceInstantSnapshot, r.project),
		StorageLocations:      asked.StorageLocations, SnapshotType: cmp.Or(asked.SnapshotType, "STANDARD"),
		Id: newID(), SelfLink: path, Status: statusCreating,
	}}
}

func (j *insertSnapshot) Locks() []string {
	return []string{j.From.Path, j.Snapshot.SelfLink}
}

func (j *insertSnapshot) Accept(s *Engine) (target, error) {
	if err := checkName(j.Snapshot.Name); err != nil {
		return target{}, err
	}
	if err := checkLabels(j.Snapshot.Labels); err != nil {
		return target{}, err
	}
	if _, found := s.snapshots.get(j.Snapshot.SelfLink); found {
		return target{}, errExists(j.Snapshot.SelfLink)
	}
	if err := j.takeSource(s); err != nil {
		return target{}, err
	}
	j.Snapshot.CreationTimestamp = s.timestamp()
	s.snapshots.put(j.Snapshot.SelfLink, j.Snapshot)
	return target{path: j.Snapshot.SelfLink, id: j.Snapshot.Id}, nil
}

// takeSource finds the disk or instant snapshot that the snapshot is made from.
func (j *insertSnapshot) takeSource(s *Engine) error {
	if path := j.Snapshot.SourceInstantSnapshot; path != "" {
		instant, found := s.instants.get(path)
		switch {
		case j.Snapshot.SourceDisk != "":
			return errInvalid("resource", j.Snapshot.Name, "A snapshot has one source.")
		case !found:
			return errNotFound(path)
		case instant.Status != statusReady:
			return errNotReady(path)
		}
		j.From = source{Path: path, ID: instant.Id}
		j.Snapshot.SourceInstantSnapshotId = strconv.FormatUint(instant.Id, 10)
		j.Snapshot.SourceDisk, j.Snapshot.SourceDiskId = instant.SourceDisk, instant.SourceDiskId
		j.Snapshot.DiskSizeGb = instant.DiskSizeGb
		return nil
	}
	disk, err := s.findReadyDisk(j.Snapshot.SourceDisk)
	if err != nil {
		return err
	}
	j.From = source{Path: disk.SelfLink, ID: disk.Id}
	j.Snapshot.SourceDiskId, j.Snapshot.DiskSizeGb = strconv.FormatUint(disk.Id, 10), disk.SizeGb
	return nil
}

func (j *insertSnapshot) Begin(s *Engine, _ string) error {
	uploading := j.Snapshot
	uploading.Status = statusUploading
	s.snapshots.put(j.Snapshot.SelfLink, uploading)
	return nil
}

func (j *insertSnapshot) Work(_ context.Context, s *Engine) error {
	return j.From.copyTo(s, j.Snapshot.Id, 0)
}

func (j *insertSnapshot) Finish(s *Engine) {
	j.Snapshot.Status = statusReady
	j.Snapshot.StorageBytes = s.contents.stored(j.Snapshot.Id)
	j.Snapshot.StorageBytesStatus = "UP_TO_DATE"
	s.snapshots.put(j.Snapshot.SelfLink, j.Snapshot)
}

func (j *insertSnapshot) Undo(s *Engine, _ string) {
	s.snapshots.remove(j.Snapshot.SelfLink)
	s.removeContent(j.Snapshot.Id, j.Snapshot.SelfLink)
}

// deleteSnapshot removes a snapshot. Disks made from it stay.
type deleteSnapshot struct {
	quick
	Path string
	ID   uint64 `json:",string"`
}

func newDeleteSnapshot(r *request) (job, error) {
	return &deleteSnapshot{Path: r.named("snapshots", "snapshot")}, nil
}

func (j *deleteSnapshot) Locks() []string { return []string{j.Path} }

func (j *deleteSnapshot) Accept(s *Engine) (target, error) {
	row, found := s.snapshots.get(j.Path)
	if !found {
		return target{}, errNotFound(j.Path)
	}
	if row.Status != statusReady {
		return target{}, errNotReady(j.Path)
	}
	j.ID = row.Id
	return target{path: j.Path, id: row.Id}, nil
}

func (j *deleteSnapshot) Begin(s *Engine, _ string) error {
	if row, found := s.snapshots.get(j.Path); !found || row.Id != j.ID {
		return errNotFound(j.Path)
	}
	return nil
}

func (j *deleteSnapshot) Work(_ context.Context, s *Engine) error { return s.contents.remove(j.ID) }

func (j *deleteSnapshot) Finish(s *Engine) { s.snapshots.remove(j.Path) }
