package gcemock

import (
	"context"
	"fmt"
	"strconv"

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

func (j *deleteDisk) locks() []string { return []string{j.Path} }

func (j *deleteDisk) accept(s *Server) (target, error) {
	row, err := s.findReadyDisk(j.Path)
	if err != nil {
		return target{}, err
	}
	j.ID = row.Id
	return target{path: j.Path, id: row.Id}, s.refuseUsers(j.Path)
}

func (j *deleteDisk) begin(s *Server, _ string) error {
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

func (j *deleteDisk) work(_ context.Context, s *Server) error { return s.images.remove(j.ID) }

func (j *deleteDisk) finish(s *Server) { s.disks.remove(j.Path) }

func (j *deleteDisk) undo(s *Server, _ string) {
	if row, found := s.disks.get(j.Path); found {
		row.Status = statusReady
		s.disks.put(j.Path, row)
	}
}

// resizeDisk makes a disk larger, also while it is attached.
type resizeDisk struct {
	quick
	Path   string
	ID     uint64 `json:",string"`
	SizeGb int64
}

func newResizeDisk(r *request) (job, error) {
	var asked compute.DisksResizeRequest
	err := r.into(&asked)
	return &resizeDisk{Path: r.named("disks", "disk"), SizeGb: asked.SizeGb}, err
}

func (j *resizeDisk) locks() []string { return []string{j.Path} }

func (j *resizeDisk) accept(s *Server) (target, error) {
	row, err := s.findReadyDisk(j.Path)
	if err != nil {
		return target{}, err
	}
	if err := j.check(row); err != nil {
		return target{}, err
	}
	j.ID = row.Id
	wanted := row
	wanted.SizeGb = j.SizeGb
	if err := s.settleType(&wanted); err != nil {
		return target{}, err
	}
	return target{path: j.Path, id: row.Id}, s.checkQuota(j.Path, j.SizeGb)
}

func (j *resizeDisk) check(row compute.Disk) error {
	if j.SizeGb > row.SizeGb {
		return nil
	}
	return errInvalid("sizeGb", strconv.FormatInt(j.SizeGb, 10),
		fmt.Sprintf("New disk size '%d' GiB must be larger than existing size '%d' GiB.", j.SizeGb, row.SizeGb))
}

func (j *resizeDisk) begin(s *Server, _ string) error {
	row, err := s.sameDisk(j.Path, j.ID)
	switch {
	case err != nil:
		return err
	case row.Status != statusReady:
		return errNotReady(j.Path)
	}
	return j.check(row)
}

func (j *resizeDisk) work(ctx context.Context, s *Server) error {
	s.Lock()
	row, found := s.disks.get(j.Path)
	s.Unlock()
	if !found {
		return errNotFound(j.Path)
	}
	if err := s.images.make(row.Id, j.SizeGb); err != nil {
		return err
	}
	// Devices that appear from now on have the new size.
	s.Lock()
	shown := s.devicesOf(j.Path)
	s.Unlock()
	for _, device := range shown {
		if err := s.options.Attacher.Resize(ctx, device); err != nil {
			return err
		}
	}
	return nil
}

func (j *resizeDisk) finish(s *Server) {
	row, err := s.sameDisk(j.Path, j.ID)
	if err != nil {
		s.removeImage(j.ID, j.Path) // it went with its instance meanwhile
		return
	}
	row.SizeGb = j.SizeGb
	s.disks.put(j.Path, row)
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

func (j *labelDisk) locks() []string { return []string{j.Path} }

func (j *labelDisk) accept(s *Server) (target, error) {
	if err := checkLabels(j.Labels); err != nil {
		return target{}, err
	}
	j.ID = s.disks.rows[j.Path].Id
	return target{path: j.Path, id: j.ID}, j.begin(s, "")
}

func (j *labelDisk) begin(s *Server, _ string) error {
	row, err := s.sameDisk(j.Path, j.ID)
	if err != nil {
		return err
	}
	if row.LabelFingerprint != j.Fingerprint {
		return errFingerprint()
	}
	return nil
}

func (j *labelDisk) finish(s *Server) {
	row, err := s.sameDisk(j.Path, j.ID)
	if err != nil {
		return // it went with its instance meanwhile
	}
	row.Labels, row.LabelFingerprint = j.Labels, fingerprintOf(j.Labels)
	s.disks.put(j.Path, row)
}
