package usage

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

const (
	// MaxFiles is how many files of a volume are counted.
	MaxFiles = 2_000_000
	// maxPending is how many volumes may wait for their count, or for a reconcile after it.
	maxPending = 1024
)

// Walker counts directories without a quota, one of a folder after another. Reconciles don't wait
// for it. All methods are safe for concurrent use.
type Walker struct {
	base  layout.Base
	clock clock.PassiveClock
	// Counted gets the volumes that were counted.
	Counted chan event.TypedGenericEvent[*stowagev1alpha1.NodeVolume]
	queue   chan layout.Volume

	mu    sync.Mutex
	known map[string]Count
	// waiting are the volumes of each folder in which one is being counted.
	waiting map[string][]layout.Volume
}

// Count is the last count of a volume.
type Count struct {
	Usage *Usage
	// TooLarge: it has more files than are counted.
	TooLarge bool
	ended    time.Time
	running  bool
}

// NewWalker returns a walker of the volumes below a base directory. Start starts it.
func NewWalker(base layout.Base, at clock.PassiveClock) *Walker {
	return &Walker{
		base: base, clock: at, known: map[string]Count{}, waiting: map[string][]layout.Volume{},
		queue:   make(chan layout.Volume, maxPending),
		Counted: make(chan event.TypedGenericEvent[*stowagev1alpha1.NodeVolume], maxPending),
	}
}

// Of returns the last count, and queues the volume for a new one if that is old. Reported is the
// time of the last report, by this process or one before.
func (w *Walker) Of(volume layout.Volume, reported time.Time) Count {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, now := w.known[volume.Name], w.clock.Now()
	if reported.After(last.ended) {
		last.ended = reported
	}
	if !last.running && now.Sub(last.ended) >= usageInterval {
		select {
		case w.queue <- volume:
			last.running = true
		default: // The queue is full: the next reconcile tries again.
		}
	}
	w.known[volume.Name] = last
	return last
}

// Forget drops what is known of a volume that is gone.
func (w *Walker) Forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, name)
}

// Start counts until its context ends. It implements manager.Runnable.
func (w *Walker) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case volume := <-w.queue:
			if w.isFirst(volume) {
				go w.walk(ctx, volume)
			}
		}
	}
}

// isFirst reports whether no volume of the same folder is being counted. Else it lets the volume
// wait.
func (w *Walker) isFirst(volume layout.Volume) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting, busy := w.waiting[volume.Path]
	if busy {
		waiting = append(waiting, volume)
	}
	w.waiting[volume.Path] = waiting
	return !busy
}

// walk counts the volumes of a folder until none waits.
func (w *Walker) walk(ctx context.Context, volume layout.Volume) {
	for found := true; found && ctx.Err() == nil; volume, found = w.next(volume.Path) {
		w.count(ctx, volume)
	}
}

func (w *Walker) next(path string) (volume layout.Volume, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.waiting[path]
	if len(waiting) == 0 {
		delete(w.waiting, path)
		return layout.Volume{}, false
	}
	w.waiting[path] = waiting[1:]
	return waiting[0], true
}

// count counts one volume, and triggers its reconcile.
func (w *Walker) count(ctx context.Context, volume layout.Volume) {
	tree, err := w.measure(ctx, volume)
	w.mu.Lock()
	last, isKnown := w.known[volume.Name]
	last.running, last.ended, last.TooLarge = false, w.clock.Now(), errors.Is(err, filetree.ErrTooLarge)
	if err == nil {
		last.Usage = &Usage{Bytes: tree.Bytes, Inodes: &tree.Inodes}
	} else if last.TooLarge {
		last.Usage = nil
	}
	if isKnown {
		w.known[volume.Name] = last
	}
	w.mu.Unlock()
	if err != nil {
		logf.FromContext(ctx).V(1).Info("counting what is in a volume", "volume", volume.Name, "error", err.Error())
	}
	object := &stowagev1alpha1.NodeVolume{}
	object.Name = volume.Name
	select {
	case w.Counted <- event.TypedGenericEvent[*stowagev1alpha1.NodeVolume]{Object: object}:
	default: // The periodic reconcile reports it.
	}
}

func (w *Walker) measure(ctx context.Context, volume layout.Volume) (filetree.Tree, error) {
	dir, err := w.base.Open(volume.Directory())
	if err != nil {
		return filetree.Tree{}, err
	}
	defer dir.Close()
	return filetree.MeasureTree(ctx, dir, MaxFiles)
}
