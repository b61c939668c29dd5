// Package engine runs operations. It accepts a change, keeps it as a job, runs it after the latency
// that is set, and publishes its outcome, also after a restart. It answers what clients ask about
// operations, and makes devices appear on instances that run.
//
// Packages disks, snapshots and instances give it their jobs. It never knows what a job
// changes, and never serves HTTP.
package engine

import (
	"context"
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
	// Locations are the projects and zones that exist.
	Locations wire.Locations
	// Latency is how long an operation takes.
	Latency time.Duration
	// QuotaGb limits the size of all disks of a project in a region; 0: no limit.
	QuotaGb int64
	// Attacher makes devices appear on instances. Nil: there are none to see.
	Attacher hotplug.Attacher
	// Log gets each call and each operation that ends in error.
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
	waiters  waiters

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
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

// Job is what one operation does. It is kept as JSON, and taken up again after a restart from Begin
// on. Every method but Accept finds its own work done and goes on.
type Job interface {
	// Accept checks a request, and makes what is visible at once. The store is locked.
	Accept(s *Engine) (Target, error)
	// Locks are the paths that no other job may touch from Begin to Finish.
	Locks() []string
	// Begin checks again, since other jobs ran after Accept, and takes what must not be
	// taken twice. The store is locked.
	Begin(s *Engine, operation string) error
	// Work does what takes time: files and devices. The store isn't locked.
	Work(ctx context.Context, s *Engine) error
	// Finish publishes the change. The store is locked.
	Finish(s *Engine)
	// Undo takes back what Accept and Begin did. The store is locked.
	Undo(s *Engine, operation string)
}

// Taker is a job that takes something from other resources: whatever has it when its turn comes.
type Taker interface {
	// Takes are the paths of those resources, which are locked beside Locks. The store is locked.
	Takes(s *Engine) []string
}

// Target is what an operation is about.
type Target struct {
	Path string
	ID   uint64
}

// Quick is a job without a part of its own for some steps.
type Quick struct{}

// Begin implements Job.
func (Quick) Begin(*Engine, string) error { return nil }

// Work implements Job.
func (Quick) Work(context.Context, *Engine) error { return nil }

// Undo implements Job.
func (Quick) Undo(*Engine, string) {}
