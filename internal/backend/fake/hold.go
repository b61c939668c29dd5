package fake

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Hold keeps every call that changes something, and ObserveNode, from going on until
// release is called, or its context ends: then its outcome isn't known, and it had none.
func (b *Backend) Hold() (release func()) { return b.HoldOnly("") }

// HoldOnly is Hold for those calls that begin with a word, such as Detach.
func (b *Backend) HoldOnly(word string) (release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gate := make(chan struct{})
	b.gate, b.gated = gate, word
	return sync.OnceFunc(func() { close(gate) })
}

// TakeAtOnce makes calls that are held, or take long, be taken before that: what is left of
// them is to wait.
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

// enter notes a call, waits while calls are held, and locks.
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

// wait waits for a gate to open, where there is one, and for as long as is said.
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
