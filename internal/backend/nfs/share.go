package nfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// ours is the directory of a share that no pod mounts.
	ours = ".stowage"
	// ownerOnly is the mode of directories that no pod uses.
	ownerOnly = 0o700
)

// share is a share and how it is reached.
type share struct {
	*server
	open func(ctx context.Context) (tree.Dir, error)
	// uninterruptible is set where the kernel decides how long a call takes.
	uninterruptible bool
	// slice is how long files are removed by one call.
	slice time.Duration
}

// server bounds what is under way on one server, for all shares on it.
type server struct {
	name  string
	slots chan struct{}
	limits
}

// limits bound what a server that is slow, or silent, can hold up.
type limits struct {
	// call is how long a server may take to answer a call.
	call time.Duration
	// operation is how long the calls of one operation may take together.
	operation time.Duration
	// turn is how long an operation waits for others on the same server.
	turn time.Duration
	// parallel is how many operations may be under way on a server.
	parallel int
}

// use opens the share and does some work on it. It returns when the context ends,
// also if the work is stuck in the kernel: that then goes on holding its turn, so
// that a server that is silent for ever can't hold up more than its turns.
func use[T any](ctx context.Context, s *share, work func(ctx context.Context, root tree.Dir) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.operation)
	defer cancel()
	var none T
	if err := s.takeTurn(ctx); err != nil {
		return none, err
	}
	if !s.uninterruptible {
		defer s.endTurn()
		return onRoot(ctx, s, work)
	}
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		defer s.endTurn()
		result, err := onRoot(ctx, s, work)
		done <- outcome{result, err}
	}()
	select {
	case end := <-done:
		return end.result, end.err
	case <-ctx.Done():
		return none, fmt.Errorf("waiting for the kernel, which waits for server %s: %w", s.name, errors.Join(tree.ErrLost, ctx.Err()))
	}
}

func onRoot[T any](ctx context.Context, s *share, work func(ctx context.Context, root tree.Dir) (T, error)) (T, error) {
	root, err := s.open(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer root.Close()
	return work(ctx, root)
}

func (s *server) takeTurn(ctx context.Context) error {
	patience := time.NewTimer(s.turn)
	defer patience.Stop()
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-patience.C:
	case <-ctx.Done():
	}
	return backend.Unavailable.Errorf("%d operations on server %s are under way, and none ends: look whether it answers", cap(s.slots), s.name)
}

func (s *server) endTurn() { <-s.slots }
