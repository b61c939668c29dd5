package emptydir

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// measureInterval is how often a volume is measured. One that takes long is measured only
	// after restFactor times as long, so that it leaves the disk to others.
	measureInterval = time.Minute
	restFactor      = 20
	// dueInterval is how often the volumes that are due are measured.
	dueInterval = 10 * time.Second
	// mostFiles is how many files of a volume are counted.
	mostFiles = 2_000_000
)

// sizes measures volumes on disk with a sizeLimit that no quota enforces. Checks of published
// volumes register them: nothing of it outlives the process.
type sizes struct {
	mu    sync.Mutex
	known map[string]*size
}

// size is the measured size of one volume.
type size struct {
	pod         types.UID
	limit, used int64
	due         time.Time
}

func (s *size) isOver() bool { return s.used > s.limit }

func newSizes() *sizes { return &sizes{known: map[string]*size{}} }

// check returns an error if a volume was measured to be over its limit. The volume is measured
// from then on.
func (s *sizes) check(spec volumes.Spec, dir string) error {
	limit := limitOf(spec)
	if limit == 0 || spec.Pod == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of, known := s.known[dir]
	if !known {
		of = &size{pod: spec.Pod.UID}
		s.known[dir] = of
	}
	of.limit = limit
	if !of.isOver() {
		return nil
	}
	// Without the size: each change of it would be a new event.
	return fmt.Errorf("it takes up more than its sizeLimit, which is %s: remove files from it, or delete the pod: %w",
		spec.Volume.EmptyDir.SizeLimit, volumes.ErrOverLimit)
}

func (s *sizes) forget(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, dir)
}

// watch measures one volume after another, until the context ends.
func (s *sizes) watch(ctx context.Context, wake volumes.Wake) {
	ticker := time.NewTicker(dueInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.measureDue(ctx, time.Now(), wake)
		}
	}
}

// measureDue measures all that are due, and wakes the pods of those that passed their limit.
func (s *sizes) measureDue(ctx context.Context, now time.Time, wake volumes.Wake) {
	for _, dir := range s.dueAt(now) {
		began := time.Now()
		used, err := measure(ctx, dir)
		if err != nil {
			logf.FromContext(ctx).Info("measuring an emptyDir volume", "directory", dir, "error", err.Error())
		}
		if pod, changed := s.record(dir, used, now.Add(max(measureInterval, restFactor*time.Since(began)))); changed {
			wake(pod)
		}
	}
}

func (s *sizes) dueAt(now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []string
	for dir, of := range s.known {
		if !now.Before(of.due) {
			due = append(due, dir)
		}
	}
	return due
}

// record records the size of a volume, and reports whether that passed its limit, up or down.
func (s *sizes) record(dir string, used int64, due time.Time) (pod types.UID, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, known := s.known[dir]
	if !known {
		return "", false
	}
	was := of.isOver()
	of.used, of.due = used, due
	return of.pod, of.isOver() != was
}

// measure returns the bytes of the volume at dir; 0 where a quota limits it, or if it has too many
// files.
func measure(ctx context.Context, dir string) (int64, error) {
	opened, err := openPlain(dir)
	if opened == nil || err != nil {
		return 0, err
	}
	defer opened.Close()
	project, err := limitedBy(opened, dir)
	if err != nil || project != 0 {
		return 0, err
	}
	tree, err := filetree.MeasureTree(ctx, opened, mostFiles)
	if errors.Is(err, filetree.ErrTooLarge) {
		return 0, fmt.Errorf("its sizeLimit isn't checked: %w", err)
	}
	return tree.Bytes, err
}
