package gcemock

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// powerInstance stops, starts or resets an instance. What is attached stays attached;
// an instance that is stopped has no devices.
type powerInstance struct {
	Path string
	ID   uint64 `json:",string"`
	// Down and Up say what happens: a reset is both.
	Down, Up bool
	// Before is its status before it changed.
	Before string
}

func newStopInstance(r *request) (job, error) {
	return &powerInstance{Path: r.named("instances", "instance"), Down: true}, nil
}

func newStartInstance(r *request) (job, error) {
	return &powerInstance{Path: r.named("instances", "instance"), Up: true}, nil
}

func newResetInstance(r *request) (job, error) {
	return &powerInstance{Path: r.named("instances", "instance"), Down: true, Up: true}, nil
}

func (j *powerInstance) Locks() []string { return []string{j.Path} }

func (j *powerInstance) Accept(s *Engine) (target, error) {
	row, err := s.findInstance(j.Path)
	if err != nil {
		return target{}, err
	}
	if !slices.Contains([]string{statusInstanceRunning, statusTerminated}, row.Status) {
		return target{}, errNotReady(j.Path)
	}
	if row.Status == statusTerminated && j.Down && j.Up {
		return target{}, errNotReady(j.Path)
	}
	j.ID, j.Before = row.Id, row.Status
	return target{path: j.Path, id: row.Id}, nil
}

func (j *powerInstance) Begin(s *Engine, _ string) error {
	row, err := s.sameInstance(j.Path, j.ID)
	if err != nil {
		return err
	}
	if row.Status == statusTerminated && j.Down && j.Up {
		return errNotReady(j.Path) // it was stopped meanwhile
	}
	j.Before = settled(row.Status, j.Before)
	switch {
	case j.Down && j.Up:
	case j.Down:
		setStatus(s, j.Path, statusStopping)
	default:
		setStatus(s, j.Path, statusStaging)
	}
	return nil
}

func (j *powerInstance) Work(ctx context.Context, s *Engine) error {
	if j.Down {
		if err := s.powerOff(ctx, j.Path); err != nil {
			return err
		}
	}
	if !j.Up {
		return nil
	}
	err := s.plugAll(ctx, j.Path)
	if err != nil && !j.Down {
		return errors.Join(err, s.unplugAll(ctx, j.Path))
	}
	return err
}

func (j *powerInstance) Finish(s *Engine) {
	if j.Up {
		setStatus(s, j.Path, statusInstanceRunning)
	} else {
		setStatus(s, j.Path, statusTerminated)
	}
}

func (j *powerInstance) Undo(s *Engine, _ string) { setStatus(s, j.Path, j.Before) }

// settled is the status of an instance before an operation on it began: not the one
// that the operation itself had set when it was interrupted.
func settled(now, before string) string {
	if now == statusInstanceRunning || now == statusTerminated {
		return now
	}
	return before
}

// sortedDisks are the disks of attachments, in the order in which jobs lock them.
func sortedDisks(rows []attachment) []string {
	var disks []string
	for _, row := range rows {
		disks = append(disks, row.Disk)
	}
	slices.SortFunc(disks, strings.Compare)
	return slices.Compact(disks)
}
