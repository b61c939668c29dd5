package instances

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
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

func newStopInstance(r *wire.Request) (engine.Job, error) {
	return &powerInstance{Path: r.Named("instances", "instance"), Down: true}, nil
}

func newStartInstance(r *wire.Request) (engine.Job, error) {
	return &powerInstance{Path: r.Named("instances", "instance"), Up: true}, nil
}

func newResetInstance(r *wire.Request) (engine.Job, error) {
	return &powerInstance{Path: r.Named("instances", "instance"), Down: true, Up: true}, nil
}

func (j *powerInstance) Locks() []string { return []string{j.Path} }

func (j *powerInstance) Accept(s *engine.Engine) (engine.Target, error) {
	row, err := s.FindInstance(j.Path)
	if err != nil {
		return engine.Target{}, err
	}
	if !slices.Contains([]string{state.StatusInstanceRunning, state.StatusTerminated}, row.Status) {
		return engine.Target{}, wire.NotReady(j.Path)
	}
	if row.Status == state.StatusTerminated && j.Down && j.Up {
		return engine.Target{}, wire.NotReady(j.Path)
	}
	j.ID, j.Before = row.Id, row.Status
	return engine.Target{Path: j.Path, ID: row.Id}, nil
}

func (j *powerInstance) Begin(s *engine.Engine, _ string) error {
	row, err := s.SameInstance(j.Path, j.ID)
	if err != nil {
		return err
	}
	if row.Status == state.StatusTerminated && j.Down && j.Up {
		return wire.NotReady(j.Path) // it was stopped before the reset began
	}
	j.Before = settled(row.Status, j.Before)
	switch {
	case j.Down && j.Up:
	case j.Down:
		setStatus(s, j.Path, state.StatusStopping)
	default:
		setStatus(s, j.Path, state.StatusStaging)
	}
	return nil
}

func (j *powerInstance) Work(ctx context.Context, s *engine.Engine) error {
	if j.Down {
		if err := s.PowerOff(ctx, j.Path); err != nil {
			return err
		}
	}
	if !j.Up {
		return nil
	}
	err := s.PlugAll(ctx, j.Path)
	if err != nil && !j.Down {
		return errors.Join(err, s.UnplugAll(ctx, j.Path))
	}
	return err
}

func (j *powerInstance) Finish(s *engine.Engine) {
	if j.Up {
		setStatus(s, j.Path, state.StatusInstanceRunning)
	} else {
		setStatus(s, j.Path, state.StatusTerminated)
	}
}

func (j *powerInstance) Undo(s *engine.Engine, _ string) { setStatus(s, j.Path, j.Before) }

// settled is the status of an instance before an operation on it began. That is not the one that
// the operation itself had set when it was interrupted.
func settled(now, before string) string {
	if now == state.StatusInstanceRunning || now == state.StatusTerminated {
		return now
	}
	return before
}

// sortedDisks are the disks of attachments, in the order in which jobs lock them.
func sortedDisks(rows []state.Attachment) []string {
	var disks []string
	for _, row := range rows {
		disks = append(disks, row.Disk)
	}
	slices.SortFunc(disks, strings.Compare)
	return slices.Compact(disks)
}
