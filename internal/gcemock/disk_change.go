package gcemock

import (
	"context"

	"google.golang.org/api/compute/v1"
)

// deleteDisk removes a disk that nothing uses.
type deleteDisk struct {
	Path string
	ID   uint64 `json:",string"`
}

func newDeleteDisk(r *request) (job, error) {
	return &deleteDisk{Path: r.named("disks", "disk")}, nil
}

func (j *deleteDisk) Locks() []string { return []string{j.Path} }

func (j *deleteDisk) Accept(s *Engine) (target, error) {
	row, err := s.findReadyDisk(j.Path)
	if err != nil {
		return target{}, err
	}
	j.ID = row.Id
	return target{path: j.Path, id: row.Id}, s.refuseUsers(j.Path)
}

func (j *deleteDisk) Begin(s *Engine, _ string) error {
	row, err := s.sameDisk(j.Path, j.ID)
	if err != nil {
		return err
	}
	if err := s.refuseUsers(j.Path); err != nil {
		return err
	}
	row.Status = statusDeleting
	s.disks.put(j.Path, row)
	return nil
}

func (j *deleteDisk) Work(_ context.Context, s *Engine) error { return s.contents.remove(j.ID) }

func (j *deleteDisk) Finish(s *Engine) {
	s.disks.remove(j.Path)
	s.dropInstants(j.ID)
}

func (j *deleteDisk) Undo(s *Engine, _ string) {
	if row, found := s.disks.get(j.Path); found {
		row.Status = statusReady
		s.disks.put(j.Path, row)
	}
}

// labelDisk replaces the labels of a disk.
type labelDisk struct {
	quick
	Path        string
	ID          uint64 `json:",string"`
	Labels      map[string]string
	Fingerprint string
}

func newLabelDisk(r *request) (job, error) {
	var asked compute.ZoneSetLabelsRequest
	err := r.into(&asked)
	return &labelDisk{Path: r.named("disks", "resource"), Labels: asked.Labels, Fingerprint: asked.LabelFingerprint}, err
}

func (j *labelDisk) Locks() []string { return []string{j.Path} }

func (j *labelDisk) Accept(s *Engine) (target, error) {
	if err := checkLabels(j.Labels); err != nil {
		return target{}, err
	}
	j.ID = s.disks.rows[j.Path].Id
	return target{path: j.Path, id: j.ID}, j.Begin(s, "")
}

func (j *labelDisk) Begin(s *Engine, _ string) error {
	row, err := s.sameDisk(j.Path, j.ID)
	if err != nil {
		return err
	}
	if row.LabelFingerprint != j.Fingerprint {
		return errFingerprint()
	}
	return nil
}

func (j *labelDisk) Finish(s *Engine) {
	row, err := s.sameDisk(j.Path, j.ID)
	if err != nil {
		return // it went with its instance meanwhile
	}
	row.Labels, row.LabelFingerprint = j.Labels, fingerprintOf(j.Labels)
	s.disks.put(j.Path, row)
}
