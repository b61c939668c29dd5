package engine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// resume goes on with operations that were under way.
func (s *Engine) resume() {
	s.Lock()
	defer s.Unlock()
	for _, row := range s.Operations.Rows {
		if row.Public.Status != state.StatusDone {
			s.start(row, nil)
		}
	}
}

// start runs an operation in a goroutine of its own. The store is locked, and open.
func (s *Engine) start(row state.Operation, stuck <-chan struct{}) {
	s.running.Go(func() {
		if err := s.run(row, stuck); err != nil && s.ctx.Err() == nil {
			s.Options.Log.Error(err, "an operation can't be written", "operation", row.Public.Name)
		}
	})
}

// run takes an operation to its end. It returns early only when the server closes,
// or can't write.
func (s *Engine) run(row state.Operation, stuck <-chan struct{}) error {
	path := row.Public.SelfLink
	job := s.Jobs[row.Method]()
	if err := json.Unmarshal(row.Job, job); err != nil {
		return fmt.Errorf("decoding %s: %w", row.Method, err)
	}
	total := s.Faults.Latency().Operation + row.Delay
	if row.Public.Status == state.StatusPending {
		// It is PENDING for a quarter of the time.
		if err := s.Pause(s.ctx, total/4); err != nil {
			return err
		}
		// What can't be written now is written with what changes next.
		if err := s.progress(path, state.StatusRunning); err != nil && s.ctx.Err() != nil {
			return err
		}
	}
	if stuck != nil {
		select {
		case <-stuck:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	if err := s.Pause(s.ctx, total-total/4); err != nil {
		return err
	}
	unlock := s.lockFor(job)
	defer unlock()
	return s.perform(path, job, row.Failure)
}

// perform does what an operation is for.
func (s *Engine) perform(path string, job Job, failure *wire.Error) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	begun := false
	err := s.Update(func() error {
		err := job.Begin(s, path)
		begun = err == nil // also if it can't be written
		return err
	})
	switch {
	case err != nil:
	case failure != nil:
		err = failure
	default:
		err = job.Work(s.ctx, s)
	}
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	return s.end(path, job, begun, err)
}

// end publishes the outcome of an operation, and marks it DONE, in one change.
func (s *Engine) end(path string, job Job, begun bool, failed error) error {
	defer s.waiters.wake(path)
	return s.Update(func() error {
		row, _ := s.Operations.Get(path)
		switch {
		case failed == nil:
			job.Finish(s)
		case begun:
			job.Undo(s, path)
		}
		if failed != nil {
			known := wire.AsError(failed)
			row.Public.Error = known.Ended()
			row.Public.HttpErrorStatusCode = int64(known.Status)
			row.Public.HttpErrorMessage = strings.ToUpper(http.StatusText(known.Status))
			s.Options.Log.Info("an operation ended in error", "operation", row.Public.Name, "method", row.Method, "error", failed)
		}
		row.Public.Status, row.Public.Progress, row.Public.EndTime = state.StatusDone, 100, s.Timestamp()
		s.Operations.Put(path, row)
		return nil
	})
}

func (s *Engine) progress(path, status string) error {
	return s.Update(func() error {
		row, _ := s.Operations.Get(path)
		row.Public.Status, row.Public.StartTime = status, s.Timestamp()
		s.Operations.Put(path, row)
		return nil
	})
}
