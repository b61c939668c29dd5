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
	// mostWaiting is how many volumes may wait to be told that they were counted.
	mostWaiting = 1024
)

// Walker counts what is in directories that have no quota, one of a folder after another
// and slowly, apart from the passes over NodeVolumes, which go on meanwhile.
type Walker struct {
	base    layout.Base
	clock   clock.PassiveClock
	Counted chan event.TypedGenericEvent[*stowagev1alpha1.NodeVolume]
	asked   chan layout.Volume

	mu    sync.Mutex
	known map[string]Count
	// waiting are the volumes of each folder in which one is being counted.
	waiting map[string][]layout.Volume
}

// Count is what is known of a volume.
type Count struct {
	Usage *Usage
	// TooLarge: it was given up.
	TooLarge bool
	ended    time.Time
	running  bool
}

// NewWalker returns a walker of the volumes below a base directory. Start starts it.
func NewWalker(base layout.Base, at clock.PassiveClock) *Walker {
	return &Walker{
		base: base, clock: at, known: map[string]Count{}, waiting: map[string][]layout.Volume{},
		asked:   make(chan layout.Volume, mostWaiting),
		Counted: make(chan event.TypedGenericEvent[*stowagev1alpha1.NodeVolume], mostWaiting),
	}
}

// Of is what was counted last. A volume is counted anew when that is some time ago;
// told is when something of it was known before this process.
func (w *Walker) Of(volume layout.Volume, told time.Time) Count {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, now := w.known[volume.Name], w.clock.Now()
	if told.After(last.ended) {
		last.ended = told
	}
	if !last.running && now.Sub(last.ended) >= usageInterval {
		select {
		case w.asked <- volume:
			last.running = true
		default: // so many wait already: another time
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
		case volume := <-w.asked:
			if w.isFirst(volume) {
				go w.walk(ctx, volume)
			}
		}
	}
}

// isFirst says that nothing of a volume's folder is being counted, or has it wait.
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

// walk counts volumes of a folder until none waits.
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

// count counts one volume, and has it looked at again.
func (w *Walker) count(ctx context.Context, volume layout.Volume) {
	tree, err := w.measure(ctx, volume)
	w.mu.Lock()
	last, asked := w.known[volume.Name]
	last.running, last.ended, last.TooLarge = false, w.clock.Now(), errors.Is(err, filetree.ErrTooLarge)
	if err == nil {
		last.Usage = &Usage{Bytes: tree.Bytes, Inodes: &tree.Inodes}
	} else if last.TooLarge {
		last.Usage = nil
	}
	if asked {
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
	default: // it is looked at before long anyhow
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
