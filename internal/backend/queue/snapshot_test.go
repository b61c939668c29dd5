package queue_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

func TestCallsAboutASnapshotGoThroughTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, woken := newDesk(t, 1), make(chan struct{}, 100)
		if _, err := d.Backend.Provision(t.Context(), backendtest.Request("1")); err != nil {
			t.Fatal(err)
		}
		d.SetLatency(time.Second)
		served := d.queue.Serve(queue.Target{Name: "disks", Limit: 1}, d.Backend, func() { woken <- struct{}{} })
		snapshotter, err := backend.SnapshotterOf(served, "disks")
		if err != nil {
			t.Fatal(err)
		}
		answered := func(call func() error) {
			t.Helper()
			err := call()
			if !errors.Is(err, backend.Queued) {
				t.Fatalf("a slow call answers %v at once", err)
			}
			<-woken
			if err := call(); err != nil {
				t.Fatalf("the repeat answers %v", err)
			}
		}
		var made *backend.Snapshot
		answered(func() (err error) {
			made, err = snapshotter.CreateSnapshot(t.Context(), backend.SnapshotRequest{ID: "snapshot-a", Owner: "a", Volume: backendtest.Request("1").ID})
			return err
		})
		answered(func() error {
			found, err := snapshotter.FindSnapshot(t.Context(), made.Handle)
			if err == nil && found.Handle != made.Handle {
				t.Errorf("found is %+v", found)
			}
			return err
		})
		answered(func() error { return backend.RetainSnapshot(t.Context(), served, made.Handle) })
		answered(func() error { return snapshotter.DeleteSnapshot(t.Context(), made.Handle) })
	})
}

func TestABackendThatMakesNoSnapshotsMakesNoneThroughTheQueue(t *testing.T) {
	served := newDesk(t, 1).queue.Serve(queue.Target{Name: "disks", Limit: 1}, onlyVolumes{fake.New()}, func() {})
	if _, err := backend.SnapshotterOf(served, "disks"); !errors.Is(err, backend.Invalid) {
		t.Errorf("it has %v", err)
	}
}

// onlyVolumes hides a backend's abilities.
type onlyVolumes struct{ backend.Backend }
