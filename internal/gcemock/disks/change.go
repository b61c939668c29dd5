package disks

import (
	"context"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// deleteDisk removes a disk that nothing uses.
type deleteDisk struct {
	Path string
	ID   uint64 `json:",string"`
}

func newDeleteDisk(r *wire.Request) (engine.Job, error) {
	return &deleteDisk{Path: r.Named("disks", "disk")}, nil
}

func (j *deleteDisk) Locks() []string { return []string{j.Path} }

func (j *deleteDisk) Accept(s *engine.Engine) (engine.Target, error) {
	row, err := s.FindReadyDisk(j.Path)
	if err != nil {
		return engine.Target{}, err
	}
	j.ID = row.Id
	return engine.Target{Path: j.Path, ID: row.Id}, s.RefuseUsers(j.Path)
}

func (j *deleteDisk) Begin(s *engine.Engine, _ string) error {
	row, err := s.SameDisk(j.Path, j.ID)
	if err != nil {
		return err
	}
	if err := s.RefuseUsers(j.Path); err != nil {
		return err
	}
	row.Status = state.StatusDeleting
	s.Disks.Put(j.Path, row)
	return nil
}

func (j *deleteDisk) Work(_ context.Context, s *engine.Engine) error { return s.Contents.Remove(j.ID) }

func (j *deleteDisk) Finish(s *engine.Engine) {
	s.Disks.Remove(j.Path)
	s.DropInstants(j.ID)
}

func (j *deleteDisk) Undo(s *engine.Engine, _ string) {
	if row, found := s.Disks.Get(j.Path); found {
		row.Status = state.StatusReady
		s.Disks.Put(j.Path, row)
	}
}

// labelDisk replaces the labels of a disk.
type labelDisk struct {
	engine.Quick
	Path        string
	ID          uint64 `json:",string"`
	Labels      map[string]string
	Fingerprint string
}

func newLabelDisk(r *wire.Request) (engine.Job, error) {
	var requested compute.ZoneSetLabelsRequest
	err := r.Into(&requested)
	return &labelDisk{Path: r.Named("disks", "resource"), Labels: requested.Labels, Fingerprint: requested.LabelFingerprint}, err
}

func (j *labelDisk) Locks() []string { return []string{j.Path} }

func (j *labelDisk) Accept(s *engine.Engine) (engine.Target, error) {
	if err := wire.CheckLabels(j.Labels); err != nil {
		return engine.Target{}, err
	}
	j.ID = s.Disks.Rows[j.Path].Id
	return engine.Target{Path: j.Path, ID: j.ID}, j.Begin(s, "")
}

func (j *labelDisk) Begin(s *engine.Engine, _ string) error {
	row, err := s.SameDisk(j.Path, j.ID)
	if err != nil {
		return err
	}
	if row.LabelFingerprint != j.Fingerprint {
		return wire.FingerprintMismatch()
	}
	return nil
}

func (j *labelDisk) Finish(s *engine.Engine) {
	row, err := s.SameDisk(j.Path, j.ID)
	if err != nil {
		return // it went with its instance during the operation
	}
	row.Labels, row.LabelFingerprint = j.Labels, wire.FingerprintOf(j.Labels)
	s.Disks.Put(j.Path, row)
}
