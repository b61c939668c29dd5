package operations

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/effect"
)

// Kind is what an operation does to a volume's directory.
type Kind int

const (
	// Mounting makes the volume visible there.
	Mounting Kind = iota
	// Refreshing brings the content of a mounted volume up to date.
	Refreshing
	// Unmounting undoes Mounting.
	Unmounting
	// Growing grows its file system to the size of its storage.
	Growing
)

// String is the kind's name in metrics.
func (k Kind) String() string {
	return [...]string{Mounting: "mount", Refreshing: "refresh", Unmounting: "unmount", Growing: "grow"}[k]
}

// undoes reports whether a kind undoes another one.
func (k Kind) undoes(other Kind) bool {
	return k == Unmounting && (other == Mounting || other == Refreshing)
}

// Task is what an operation does, and where.
type Task struct {
	Kind Kind
	// Type is the name of the volume's type, or of its queue if the type has several.
	Type string
	// Dir is the volume's directory.
	Dir string
	// Pod is the pod of the volume.
	Pod types.UID
	// About has the keys and values of the line that logs a mount or an unmount; nil: there is
	// none.
	About []any
}

// log logs the effect of an operation that began at a time and succeeded.
func (t Task) log(ctx context.Context, began time.Time) {
	switch {
	case t.About == nil:
	case t.Kind == Mounting:
		effect.LogValues(ctx, effect.Mounted, began, t.About)
	case t.Kind == Unmounting:
		effect.LogValues(ctx, effect.Unmounted, began, t.About)
	}
}

// phase is how far an operation is.
type phase int

const (
	// idle: it failed, and may be requested again.
	idle phase = iota
	queued
	running
)

// operation is the queued, running or failed operation of one volume.
type operation struct {
	Task
	work      func()
	cancel    context.CancelFunc
	release   func()
	cancelled bool
	// begun has the operations of the View that began it; nil: none did.
	begun *begun
	phase phase
	// since is when it was queued, or began to run.
	since time.Time
	// leave gives up its place in its queue, and ended counts its outcome.
	leave func()
	ended func(outcome string)

	err      error
	failures int
	retryAt  time.Time
}

// prepare makes it ready to run, perhaps again.
func (o *operation) prepare(task Task, work func(), cancel context.CancelFunc, release func()) {
	o.Task, o.work, o.cancel, o.release, o.cancelled = task, work, cancel, release, false
}

// outcome is its state while it isn't idle.
func (o *operation) outcome(now time.Time) Outcome {
	if o.phase == queued {
		return Outcome{Queued: true, QueuedFor: now.Sub(o.since)}
	}
	return Outcome{Running: true, RunningFor: now.Sub(o.since)}
}
