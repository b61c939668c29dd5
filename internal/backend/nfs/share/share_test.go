package share

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// stuckShare is a mount from a silent server: the kernel blocks every call until
// release.
func stuckShare(parallel int) (stuck *Share, release context.CancelFunc) {
	held, release := context.WithCancel(context.Background())
	stuck = &Share{
		Server: &Server{
			Name: "nfs.example.com", Slots: make(chan struct{}, parallel),
			Limits: Limits{Operation: 100 * time.Millisecond, SlotWait: 100 * time.Millisecond},
		},
		Uninterruptible: true,
		Open: func(context.Context) (tree.Dir, error) {
			<-held.Done()
			return nil, errors.New("let go")
		},
	}
	return stuck, release
}

func work(context.Context, tree.Dir) (string, error) { return "done", nil }

func TestACallThatIsStuckInTheKernelIsLeftThere(t *testing.T) {
	stuck, release := stuckShare(1)
	defer release()
	if _, err := Use(t.Context(), stuck, work); !errors.Is(err, tree.ErrLost) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}

func TestWhatIsStuckInTheKernelIsBounded(t *testing.T) {
	const parallel = 3
	stuck, release := stuckShare(parallel)
	for range parallel {
		_, _ = Use(t.Context(), stuck, work)
	}
	if _, err := Use(t.Context(), stuck, work); !errors.Is(err, backend.Unavailable) {
		t.Errorf("one more ended with %v", err)
	}
	release()
	for range parallel {
		// Each frees its slot once the kernel returns.
		stuck.Slots <- struct{}{}
	}
}

func TestACallerWaitsForNoSlotAfterItsContext(t *testing.T) {
	stuck, release := stuckShare(0)
	defer release()
	stuck.SlotWait = time.Hour
	stuck.Operation = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Use(ctx, stuck, work); !errors.Is(err, backend.Unavailable) {
		t.Errorf("it ended with %v", err)
	}
}
