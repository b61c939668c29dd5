package gcemock

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

// engineOptions describe what an engine serves.
type engineOptions struct {
	// Folder keeps all that exists. It belongs to one engine at a time.
	Folder string
	// Places are the projects and zones that there are.
	Places places
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
	options engineOptions
	*store
	contents contents
	faults   *faults
	jobs     map[string]func() job
	busy     keyedLock
	waiting  waiting

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

// open opens what a folder holds, and goes on with the operations that were under way:
// jobs make an empty job of each method that changes something.
func open(ctx context.Context, options engineOptions, jobs map[string]func() job) (*Engine, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Attacher == nil {
		options.Attacher = hotplug.None{}
	}
	opened, err := openStore(options.Folder, options.Now())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Engine{
		options: options, store: opened, contents: contents{folder: options.Folder},
		faults: newFaults(), jobs: jobs, waiting: newWaiting(), ctx: ctx, stop: stop,
	}
	s.faults.set(latency{Operation: options.Latency})
	s.restoreDevices(ctx)
	s.resume()
	return s, nil
}

// Close stops what is under way, which goes on when the folder is opened again.
func (s *Engine) Close() error {
	s.stop()
	s.Lock()
	s.closed = true
	s.Unlock()
	s.running.Wait()
	return s.close()
}

// timestamp is the present as Google writes it.
func (s *Engine) timestamp() string {
	return s.options.Now().Format("2006-01-02T15:04:05.000-07:00")
}

// resume goes on with operations that were under way.
func (s *Engine) resume() {
	s.Lock()
	defer s.Unlock()
	for _, row := range s.operations.rows {
		if row.Public.Status != statusDone {
			s.start(row, nil)
		}
	}
}

// start runs an operation on its own, once it is let go of. The store is locked, and open.
func (s *Engine) start(row operation, stuck <-chan struct{}) {
	s.running.Go(func() {
		if err := s.run(row, stuck); err != nil && s.ctx.Err() == nil {
			s.options.Log.Error(err, "an operation can't be written", "operation", row.Public.Name)
		}
	})
}

// run takes an operation to its end. It returns early only when the server closes,
// or can't write.
func (s *Engine) run(row operation, stuck <-chan struct{}) error {
	path := row.Public.SelfLink
	job := s.jobs[row.Method]()
	if err := json.Unmarshal(row.Job, job); err != nil {
		return fmt.Errorf("decoding %s: %w", row.Method, err)
	}
	total := s.faults.latency().Operation + row.Delay
	if row.Public.Status == statusPending {
		// A quarter of the time it waits for its turn.
		if err := s.pause(s.ctx, total/4); err != nil {
			return err
		}
		// What can't be written now is written with what changes next.
		if err := s.progress(path, statusRunning); err != nil && s.ctx.Err() != nil {
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
	if err := s.pause(s.ctx, total-total/4); err != nil {
		return err
	}
	unlock := s.busy.lock(job.Locks())
	defer unlock()
	return s.perform(path, job, row.Failure)
}

// perform does what an operation is for.
func (s *Engine) perform(path string, job job, failure *apiError) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	begun := false
	err := s.update(func() error {
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
func (s *Engine) end(path string, job job, begun bool, failed error) error {
	defer s.waiting.wake(path)
	return s.update(func() error {
		row, _ := s.operations.get(path)
		switch {
		case failed == nil:
			job.Finish(s)
		case begun:
			job.Undo(s, path)
		}
		if failed != nil {
			known := asAPIError(failed)
			row.Public.Error = known.ended()
			row.Public.HttpErrorStatusCode = int64(known.Status)
			row.Public.HttpErrorMessage = strings.ToUpper(http.StatusText(known.Status))
			s.options.Log.Info("an operation ended in error", "operation", row.Public.Name, "method", row.Method, "error", failed)
		}
		row.Public.Status, row.Public.Progress, row.Public.EndTime = statusDone, 100, s.timestamp()
		s.operations.put(path, row)
		return nil
	})
}

func (s *Engine) progress(path, status string) error {
	return s.update(func() error {
		row, _ := s.operations.get(path)
		row.Public.Status, row.Public.StartTime = status, s.timestamp()
		s.operations.put(path, row)
		return nil
	})
}

// pause waits, unless the context ends.
func (s *Engine) pause(ctx context.Context, duration time.Duration) error {
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
