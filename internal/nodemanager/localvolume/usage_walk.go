package localvolume

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
)

const (
	// mostFiles is how many files of a volume are counted.
	mostFiles = 2_000_000
	// mostWaiting is how many volumes may wait to be told that they were counted.
	mostWaiting = 1024
)

// Walker counts what is in directories that have no quota, one of a folder after another
// and slowly, apart from the passes over LocalVolumes, which go on meanwhile.
type Walker struct {
	base    Base
	clock   clock.PassiveClock
	counted chan event.TypedGenericEvent[*stowagev1alpha1.LocalVolume]
	asked   chan Volume

	mu    sync.Mutex
	known map[string]walk
	// waiting are the volumes of each folder in which one is being counted.
	waiting map[string][]Volume
}

// walk is what is known of a volume.
type walk struct {
	usage *Usage
	// tooLarge: it was given up.
	tooLarge bool
	ended    time.Time
	running  bool
}

// NewWalker returns a walker of the volumes below a base directory. Start starts it.
func NewWalker(base Base, at clock.PassiveClock) *Walker {
	return &Walker{
		base: base, clock: at, known: map[string]walk{}, waiting: map[string][]Volume{},
		asked:   make(chan Volume, mostWaiting),
		counted: make(chan event.TypedGenericEvent[*stowagev1alpha1.LocalVolume], mostWaiting),
	}
}

// usage is what was counted last. A volume is counted anew when that is some time ago;
// told is when something of it was known before this process.
func (w *Walker) usage(volume Volume, told time.Time) walk {
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

// forget drops what is known of a volume that is gone.
func (w *Walker) forget(name string) {
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
func (w *Walker) isFirst(volume Volume) bool {
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
func (w *Walker) walk(ctx context.Context, volume Volume) {
	for found := true; found && ctx.Err() == nil; volume, found = w.next(volume.Path) {
		w.count(ctx, volume)
	}
}

func (w *Walker) next(path string) (volume Volume, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.waiting[path]
	if len(waiting) == 0 {
		delete(w.waiting, path)
		return Volume{}, false
	}
	w.waiting[path] = waiting[1:]
	return waiting[0], true
}

// count counts one volume, and has it looked at again.
func (w *Walker) count(ctx context.Context, volume Volume) {
	tree, err := w.measure(ctx, volume)
	w.mu.Lock()
	last, asked := w.known[volume.Name]
	last.running, last.ended, last.tooLarge = false, w.clock.Now(), errors.Is(err, mount.ErrTooLarge)
	if err == nil {
		last.usage = &Usage{Bytes: tree.Bytes, Inodes: &tree.Inodes}
	} else if last.tooLarge {
		last.usage = nil
	}
	if asked {
		w.known[volume.Name] = last
	}
	w.mu.Unlock()
	if err != nil {
		logf.FromContext(ctx).V(1).Info("counting what is in a volume", "volume", volume.Name, "error", err.Error())
	}
	object := &stowagev1alpha1.LocalVolume{}
	object.Name = volume.Name
	select {
	case w.counted <- event.TypedGenericEvent[*stowagev1alpha1.LocalVolume]{Object: object}:
	default: // it is looked at before long anyhow
	}
}

func (w *Walker) measure(ctx context.Context, volume Volume) (mount.Tree, error) {
	dir, err := w.base.open(volume.directory())
	if err != nil {
		return mount.Tree{}, err
	}
	defer dir.Close()
	return mount.MeasureTree(ctx, dir, mostFiles)
}
