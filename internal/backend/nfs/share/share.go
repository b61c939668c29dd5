package share

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// Folder is the directory of a share that no pod mounts.
	Folder = ".stowage"
	// OwnerOnly is the mode of directories that no pod uses.
	OwnerOnly = 0o700
)

// Share is a share and the way to reach it.
type Share struct {
	*Server
	// Open opens the share's directory; its caller closes it.
	Open func(ctx context.Context) (tree.Dir, error)
	// Uninterruptible is set where a call may block in the kernel.
	Uninterruptible bool
	// Slice is how long one call removes files.
	Slice time.Duration
}

// Server limits the operations on one server, for all shares on it.
type Server struct {
	// Name is that of the server, for people.
	Name string
	// Slots has room for as many operations as may run at once.
	Slots chan struct{}
	Limits
}

// Limits limit what a slow or silent server can block.
type Limits struct {
	// Call is how long a server may take to answer a call.
	Call time.Duration
	// Operation is how long the calls of one operation may take together.
	Operation time.Duration
	// SlotWait is how long an operation waits for others on the same server.
	SlotWait time.Duration
	// Parallel is how many operations may run on a server at once.
	Parallel int
}

// Use opens the share and does some work on it. It returns when the context ends, also if the work
// is stuck in the kernel. Stuck work keeps its slot, so a server that never answers blocks no more
// than its slots.
func Use[T any](ctx context.Context, s *Share, work func(ctx context.Context, root tree.Dir) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Operation)
	defer cancel()
	var none T
	if err := s.acquireSlot(ctx); err != nil {
		return none, err
	}
	if !s.Uninterruptible {
		defer s.releaseSlot()
		return onRoot(ctx, s, work)
	}
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		defer s.releaseSlot()
		result, err := onRoot(ctx, s, work)
		done <- outcome{result, err}
	}()
	select {
	case end := <-done:
		return end.result, end.err
	case <-ctx.Done():
		return none, fmt.Errorf("waiting for the kernel, which waits for server %s: %w", s.Name, errors.Join(tree.ErrLost, ctx.Err()))
	}
}

func onRoot[T any](ctx context.Context, s *Share, work func(ctx context.Context, root tree.Dir) (T, error)) (T, error) {
	root, err := s.Open(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer root.Close()
	return work(ctx, root)
}

func (s *Server) acquireSlot(ctx context.Context) error {
	wait := time.NewTimer(s.SlotWait)
	defer wait.Stop()
	select {
	case s.Slots <- struct{}{}:
		return nil
	case <-wait.C:
	case <-ctx.Done():
	}
	return backend.Unavailable.Errorf("%d operations on server %s are under way, and none ends: look whether it answers", cap(s.Slots), s.Name)
}

func (s *Server) releaseSlot() { <-s.Slots }
