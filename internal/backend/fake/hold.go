package fake

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Hold blocks every call that changes something, and ObserveNode, until release is called or the
// call's context ends. In the second case its outcome is unknown to the caller, and it had none.
func (b *Backend) Hold() (release func()) { return b.HoldOnly("") }

// HoldOnly is Hold for calls that begin with a prefix, such as Detach.
func (b *Backend) HoldOnly(prefix string) (release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gate := make(chan struct{})
	b.gate, b.gated = gate, prefix
	return sync.OnceFunc(func() { close(gate) })
}

// AcceptAtOnce accepts calls before they are held or delayed: they only wait after that.
func (b *Backend) AcceptAtOnce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepted = true
}

// SetLatency makes every call that Hold would hold take this long.
func (b *Backend) SetLatency(latency time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latency = latency
}

// begin records a call, waits while calls are held, and locks. It fails, unlocked, as FailNext said.
func (b *Backend) begin(ctx context.Context, call string) error {
	if err := b.enter(ctx, call); err != nil {
		return err
	}
	if len(b.failures) == 0 {
		return nil
	}
	next := b.failures[0]
	b.failures = b.failures[1:]
	if next != nil { // FailNext(nil, err) fails the second call
		b.mu.Unlock()
	}
	return next
}

// enter records a call, waits while calls are held, and locks.
func (b *Backend) enter(ctx context.Context, call string) error {
	b.mu.Lock()
	b.calls = append(b.calls, call)
	gate, latency, accepted := b.gate, b.latency, b.accepted
	if !strings.HasPrefix(call, b.gated) {
		gate = nil
	}
	if gate == nil && latency == 0 {
		return nil
	}
	b.mu.Unlock()
	if accepted {
		backend.Accepted(ctx)
	}
	if err := wait(ctx, gate, latency); err != nil {
		return err
	}
	b.mu.Lock()
	return nil
}

// wait waits for a gate to open, if there is one, and then for the latency.
func wait(ctx context.Context, gate <-chan struct{}, latency time.Duration) error {
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if latency == 0 {
		return nil
	}
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
