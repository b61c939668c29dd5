package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

// janitor is a recycler that can be kept waiting.
type janitor struct {
	gate  chan struct{}
	calls int
}

func (j *janitor) Recycle(context.Context, backend.Recycling) error {
	j.calls++
	<-j.gate
	return nil
}

func TestARecyclingIsNoAnswerToTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, inner := queue.New(t.Context(), nil), &janitor{gate: make(chan struct{})}
		woken := 0
		recycle := func(version string) error {
			on := queue.Target{Name: "NFS server nfs.example.com", Version: version, Limit: 1}
			return d.ServeRecycler(on, inner, func() { woken++ }).Recycle(context.Background(), backend.Recycling{Volume: "scratch"})
		}
		if err := recycle("1"); !errors.Is(err, backend.Queued) || err.Error() != "waiting for NFS server nfs.example.com to answer" {
			t.Errorf("one that takes long is answered %v", err)
		}
		close(inner.gate)
		synctest.Wait()
		if err := recycle("2"); err != nil || inner.calls != 2 || woken == 0 {
			t.Errorf("the next is answered %v after %d calls, and %d were woken", err, inner.calls, woken)
		}
	})
}

func TestASilentServerBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, silent, awake := queue.New(t.Context(), nil), &janitor{gate: make(chan struct{})}, &janitor{gate: make(chan struct{})}
		close(awake.gate)
		defer close(silent.gate)
		for server, inner := range map[string]*janitor{"a": silent, "b": awake} {
			err := d.ServeRecycler(queue.Target{Name: server, Limit: 1}, inner, func() {}).Recycle(context.Background(), backend.Recycling{Volume: server})
			if held := errors.Is(err, backend.Queued); held != (inner == silent) {
				t.Errorf("server %s answers %v", server, err)
			}
		}
	})
}
