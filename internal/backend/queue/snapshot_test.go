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
			answeredLater(t, woken, call)
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

func TestCallsAboutAGroupSnapshotGoThroughTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, woken := newDesk(t, 1), make(chan struct{}, 100)
		driver := fake.NewCSI(d.Backend)
		of, err := driver.Provision(t.Context(), backendtest.Request("1"))
		if err != nil {
			t.Fatal(err)
		}
		d.SetLatency(time.Second)
		groups, err := backend.GroupSnapshotterOf(d.queue.Serve(queue.Target{Name: "disks", Limit: 1}, driver, func() { woken <- struct{}{} }), "disks")
		if err != nil {
			t.Fatal(err)
		}
		var made *backend.GroupSnapshot
		answeredLater(t, woken, func() (err error) {
			made, err = groups.CreateGroupSnapshot(t.Context(), backend.GroupSnapshotRequest{ID: "groupsnapshot-a", Owner: "a", Volumes: []string{of.Handle}})
			return err
		})
		members := []string{made.Members[0].Handle}
		answeredLater(t, woken, func() error {
			found, err := groups.FindGroupSnapshot(t.Context(), made.Handle, members)
			if err == nil && found.Handle != made.Handle {
				t.Errorf("found is %+v", found)
			}
			return err
		})
		answeredLater(t, woken, func() error { return groups.DeleteGroupSnapshot(t.Context(), made.Handle, members) })
		if left := driver.Groups(); len(left) != 0 {
			t.Errorf("it has %v", left)
		}
	})
}

// answeredLater makes a slow call, and makes it again once its answer woke the caller.
func answeredLater(t *testing.T, woken chan struct{}, call func() error) {
	t.Helper()
	if err := call(); !errors.Is(err, backend.Queued) {
		t.Fatalf("a slow call answers %v at once", err)
	}
	<-woken
	if err := call(); err != nil {
		t.Fatalf("the repeat answers %v", err)
	}
}

func TestABackendThatMakesNoSnapshotsMakesNoneThroughTheQueue(t *testing.T) {
	served := newDesk(t, 1).queue.Serve(queue.Target{Name: "disks", Limit: 1}, onlyVolumes{fake.New()}, func() {})
	if _, err := backend.SnapshotterOf(served, "disks"); !errors.Is(err, backend.Invalid) {
		t.Errorf("it has %v", err)
	}
	if _, err := backend.GroupSnapshotterOf(served, "disks"); !errors.Is(err, backend.Invalid) {
		t.Errorf("of groups it has %v", err)
	}
}

// onlyVolumes hides a backend's abilities.
type onlyVolumes struct{ backend.Backend }
