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
	// lookInterval is how often a volume is measured; one that takes long is so less
	// often, so that others get at the disk.
	lookInterval = time.Minute
	patience     = 20
	// pace is how often it is looked which volumes are due.
	pace = 10 * time.Second
	// mostFiles is how many files of a volume are counted.
	mostFiles = 2_000_000
)

// sizes measures volumes on disk that have a sizeLimit which no quota enforces. They are
// known from being looked for: nothing of it outlives the process.
type sizes struct {
	mu    sync.Mutex
	known map[string]*size
}

// size is what is known of one volume.
type size struct {
	pod         types.UID
	limit, used int64
	due         time.Time
}

func (s *size) isOver() bool { return s.used > s.limit }

func newSizes() *sizes { return &sizes{known: map[string]*size{}} }

// check is an error if a volume has more than it may, as far as that is known. The volume
// is measured from then on.
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
	// How much it is isn't said: each change would be told anew.
	return fmt.Errorf("it takes up more than its sizeLimit, which is %s: remove files from it, or delete the pod: %w",
		spec.Volume.EmptyDir.SizeLimit, volumes.ErrOverLimit)
}

func (s *sizes) forget(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, dir)
}

// watch measures, one after another, until the context ends.
func (s *sizes) watch(ctx context.Context, tell volumes.Tell) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.look(ctx, time.Now(), tell)
		}
	}
}

// look measures all that are due.
func (s *sizes) look(ctx context.Context, now time.Time, tell volumes.Tell) {
	for _, dir := range s.dueAt(now) {
		began := time.Now()
		used, err := measure(ctx, dir)
		if err != nil {
			logf.FromContext(ctx).Info("measuring an emptyDir volume", "directory", dir, "error", err.Error())
		}
		if pod, changed := s.note(dir, used, now.Add(max(lookInterval, patience*time.Since(began)))); changed {
			tell(pod)
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

// note remembers what a volume takes up, and says whether its pod is to be looked at.
func (s *sizes) note(dir string, used int64, due time.Time) (pod types.UID, changed bool) {
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

// measure is what the volume at dir takes up; 0 where the kernel limits it, or where it
// has too many files to be counted.
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
		return 0, fmt.Errorf("its sizeLimit isn't watched: %w", err)
	}
	return tree.Bytes, err
}
