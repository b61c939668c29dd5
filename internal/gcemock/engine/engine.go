// Package engine runs operations: it accepts a change, keeps it as a job, runs it after the
// latency that is set, and makes its outcome seen, also after a restart. It answers what
// clients ask about operations, and makes devices appear on instances that run.
//
// Packages disks, snapshots and instances give it their jobs. It never knows what a job
// changes, and never serves HTTP.
package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// Options describe what an engine serves.
type Options struct {
	// Folder keeps all that exists. It belongs to one engine at a time.
	Folder string
	// Places are the projects and zones that there are.
	Places wire.Places
	// Latency is how long an operation takes.
	Latency time.Duration
	// QuotaGb limits the size of all disks of a project in a region; 0: no limit.
	QuotaGb int64
	// Attacher makes devices appear on instances. Nil: there are none to see.
	Attacher hotplug.Attacher
	// Log tells what was asked for and how it ended.
	Log logr.Logger
	// Now is the clock. Nil: the machine's.
	Now func() time.Time
}

// Engine runs operations on what exists, which changes under the lock of its store.
type Engine struct {
	Options Options
	*state.Store
	Contents state.Contents
	Faults   *fault.Set
	Jobs     map[string]func() Job
	busy     keyedLock
	waiting  waiting

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

// Open opens what a folder holds, and goes on with the operations that were under way:
// jobs make an empty job of each method that changes something.
func Open(ctx context.Context, options Options, jobs map[string]func() Job) (*Engine, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Attacher == nil {
		options.Attacher = hotplug.None{}
	}
	opened, err := state.Open(options.Folder, options.Now())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Engine{
		Options: options, Store: opened, Contents: state.Contents{Folder: options.Folder},
		Faults: fault.NewSet(), Jobs: jobs, waiting: newWaiting(), ctx: ctx, stop: stop,
	}
	s.Faults.SetLatency(fault.Latency{Operation: options.Latency})
	s.restoreDevices(ctx)
	s.resume()
	return s, nil
}

// Close stops what is under way, which goes on when the folder is opened again.
func (s *Engine) Close() error {
	s.stop()
	s.Lock()
	s.Closed = true
	s.Unlock()
	s.running.Wait()
	return s.Store.Close()
}

// Timestamp is the present as Google writes it.
func (s *Engine) Timestamp() string {
	return s.Options.Now().Format("2006-01-02T15:04:05.000-07:00")
}

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

// start runs an operation on its own, once it is let go of. The store is locked, and open.
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
		// A quarter of the time it waits for its turn.
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
	unlock := s.busy.lock(job.Locks())
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

// end makes the outcome of an operation seen, and the operation DONE with it.
func (s *Engine) end(path string, job Job, begun bool, failed error) error {
	defer s.waiting.wake(path)
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

// Pause waits, unless the context ends.
func (s *Engine) Pause(ctx context.Context, duration time.Duration) error {
	if duration <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
