package operations

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Kind is what an operation does to a volume's directory.
type Kind int

const (
	// Mounting makes the volume visible there.
	Mounting Kind = iota
	// Refreshing makes what is mounted show what it should show by now.
	Refreshing
	// Unmounting takes it away.
	Unmounting
	// Growing makes its file system as large as its storage.
	Growing
)

// String is the kind's name in metrics.
func (k Kind) String() string {
	return [...]string{Mounting: "mount", Refreshing: "refresh", Unmounting: "unmount", Growing: "grow"}[k]
}

// undoes says whether a kind takes away what another one makes.
func (k Kind) undoes(other Kind) bool {
	return k == Unmounting && (other == Mounting || other == Refreshing)
}

// Task is what is to be done, and where.
type Task struct {
	Kind Kind
	// Type is the name of the volume's type.
	Type string
	// Dir is the volume's directory.
	Dir string
	// Pod is whose it is.
	Pod types.UID
}

// phase is how far an operation is.
type phase int

const (
	// idle: it failed, and waits to be asked for again.
	idle phase = iota
	queued
	running
)

// operation is one volume's, while it waits for its turn or runs, or after it failed.
type operation struct {
	Task
	work      func() error
	cancel    context.CancelFunc
	release   func()
	cancelled bool
	phase     phase
	// since is when it began to wait, or to run.
	since time.Time
	// loan is its place in its lane, and ended is told how it ended.
	loan  *loan
	ended func(outcome string)

	err      error
	failures int
	retryAt  time.Time
}

// prepare makes it ready to run, perhaps again.
func (o *operation) prepare(task Task, work func() error, cancel context.CancelFunc, release func()) {
	o.Task, o.work, o.cancel, o.release, o.cancelled = task, work, cancel, release, false
}

// outcome is how it stands while it isn't idle.
func (o *operation) outcome(now time.Time) Outcome {
	if o.phase == queued {
		return Outcome{Queued: true, QueuedFor: now.Sub(o.since)}
	}
	return Outcome{Running: true, RunningFor: now.Sub(o.since)}
}
