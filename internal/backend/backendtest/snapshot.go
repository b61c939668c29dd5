package backendtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/backend"
)

// snapshots is a backend with a volume, of which snapshots are made.
type snapshots struct {
	subject
	backend.Snapshotter
	// volume is the handle of the volume of Request("1"), and capacity what that has.
	volume   string
	capacity resource.Quantity
}

// SnapshotContract runs the suite against a backend that makes snapshots. Has reports whether a volume
// with an id exists.
func SnapshotContract(t *testing.T, open func(t *testing.T) (opened backend.Backend, has func(id string) bool)) {
	for name, test := range map[string]func(*testing.T, snapshots){
		"a snapshot is made, and found by its handle":           testSnapshot,
		"a repeat finds the snapshot made":                      testSnapshotRepeat,
		"a repeat completes a cancelled snapshot":               testSnapshotCancelled,
		"an id that is another volume's snapshot is a conflict": testSnapshotConflict,
		"an id that isn't its owner's is a conflict":            testSnapshotOwner,
		"an absent volume has no snapshot":                      testSnapshotOfNothing,
		"a deleted snapshot is gone, and its volume isn't":      testSnapshotDelete,
		"a backend that can list lists its snapshots":           testSnapshotList,
		"a retained snapshot is listed as such":                 testSnapshotRetain,
		"a restored volume is a volume of its own":              testRestore,
		"a restore of an absent snapshot is no empty volume":    testRestoreOfNothing,
	} {
		t.Run(name, func(t *testing.T) {
			opened, has := open(t)
			snapshotter, err := backend.SnapshotterOf(opened, "this")
			if err != nil {
				t.Fatal(err)
			}
			s := subject{opened, has}
			of := s.mustProvision(t, Request("1"))
			test(t, snapshots{s, snapshotter, of.Handle, of.Capacity})
		})
	}
}

func testSnapshot(t *testing.T, s snapshots) {
	made := s.mustSnapshot(t, "a")
	found, err := s.find(made.Handle)
	if err != nil || found.Handle != made.Handle || found.Volume != s.volume || !found.Ready || made.RestoreSize.Cmp(s.capacity) > 0 {
		t.Errorf("made is %+v, and found %+v, %v", made, found, err)
	}
}

func testSnapshotRepeat(t *testing.T, s snapshots) {
	first, again, other := s.mustSnapshot(t, "a"), s.mustSnapshot(t, "a"), s.mustSnapshot(t, "b")
	if first.Handle != again.Handle || first.Handle == other.Handle || !first.Created.Equal(again.Created) {
		t.Errorf("it made %v, then %v, and for another owner %v", first, again, other)
	}
}

func testSnapshotCancelled(t *testing.T, s snapshots) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = s.CreateSnapshot(over, s.request("a"))
	made := s.mustSnapshot(t, "a")
	_ = s.DeleteSnapshot(over, made.Handle)
	s.mustDeleteSnapshot(t, made.Handle)
}

func testSnapshotConflict(t *testing.T, s snapshots) {
	s.mustSnapshot(t, "a")
	request := s.request("a")
	request.Volume = s.mustProvision(t, Request("2")).Handle
	if _, err := s.snapshot(request); !errors.Is(err, backend.Conflict) {
		t.Errorf("it got the answer %v", err)
	}
}

func testSnapshotOwner(t *testing.T, s snapshots) {
	request := s.request("a")
	request.Owner = "b"
	if _, err := s.snapshot(request); !errors.Is(err, backend.Conflict) {
		t.Errorf("it got the answer %v", err)
	}
}

func testSnapshotOfNothing(t *testing.T, s snapshots) {
	s.mustDelete(t, s.volume)
	if _, err := s.snapshot(s.request("a")); !errors.Is(err, backend.NotFound) {
		t.Errorf("it got the answer %v", err)
	}
}

func testSnapshotDelete(t *testing.T, s snapshots) {
	made, other := s.mustSnapshot(t, "a"), s.mustSnapshot(t, "b")
	for range 2 {
		s.mustDeleteSnapshot(t, made.Handle)
	}
	if _, err := s.find(made.Handle); !errors.Is(err, backend.NotFound) {
		t.Errorf("of a deleted snapshot it got the answer %v", err)
	}
	if _, err := s.find(other.Handle); err != nil || !s.has(Request("1").ID) {
		t.Errorf("another snapshot has %v, and the volume is there: %v", err, s.has(Request("1").ID))
	}
}

func testSnapshotList(t *testing.T, s snapshots) {
	made, deleted := s.mustSnapshot(t, "a"), s.mustSnapshot(t, "b")
	s.mustDeleteSnapshot(t, deleted.Handle)
	held := s.mustListSnapshots(t)
	if len(held) != 1 || held[0].ID != made.Handle || held[0].Snapshot != "a" || held[0].Retained {
		t.Errorf("it lists %v", held)
	}
}

func testSnapshotRetain(t *testing.T, s snapshots) {
	made, other := s.mustSnapshot(t, "a"), s.mustSnapshot(t, "b")
	s.mustListSnapshots(t)
	for range 2 {
		if err := s.retainSnapshot(made.Handle); err != nil {
			t.Fatalf("retaining %s: %v", made.Handle, err)
		}
	}
	for _, held := range s.mustListSnapshots(t) {
		if held.Retained != (held.ID == made.Handle) {
			t.Errorf("it lists %v", held)
		}
	}
	s.mustDeleteSnapshot(t, made.Handle)
	if held := s.mustListSnapshots(t); len(held) != 1 || held[0].ID != other.Handle {
		t.Errorf("once it is deleted, it lists %v", held)
	}
	if err := s.retainSnapshot(made.Handle); !errors.Is(err, backend.NotFound) {
		t.Errorf("of a deleted snapshot it got the answer %v", err)
	}
}

func testRestore(t *testing.T, s snapshots) {
	made, request := s.mustSnapshot(t, "a"), Request("2")
	request.Source = &backend.Source{Snapshot: made.Handle}
	restored, again := s.mustProvision(t, request), s.mustProvision(t, request)
	s.mustDeleteSnapshot(t, made.Handle)
	if restored.Handle == s.volume || restored.Handle != again.Handle || !s.has(request.ID) {
		t.Errorf("it is %s, then %s, and is there: %v", restored.Handle, again.Handle, s.has(request.ID))
	}
}

func testRestoreOfNothing(t *testing.T, s snapshots) {
	made, request := s.mustSnapshot(t, "a"), Request("2")
	s.mustDeleteSnapshot(t, made.Handle)
	for name, source := range map[string]*backend.Source{"gone": {Snapshot: made.Handle}, "not known any more": {}} {
		request.Source = source
		if _, err := s.provision(request); !errors.Is(err, backend.Invalid) || s.has(request.ID) {
			t.Errorf("of a snapshot that is %s it got the answer %v, and is there: %v", name, err, s.has(request.ID))
		}
	}
}

func (s snapshots) request(owner string) backend.SnapshotRequest {
	return backend.SnapshotRequest{ID: backend.SnapshotID(types.UID(owner)), Owner: types.UID(owner), Namespace: "default", Volume: s.volume}
}

func (s snapshots) snapshot(request backend.SnapshotRequest) (made *backend.Snapshot, err error) {
	err = untilFinal(func() (err error) {
		made, err = s.CreateSnapshot(context.Background(), request)
		return err
	})
	return made, err
}

func (s snapshots) find(handle string) (*backend.Snapshot, error) {
	return s.FindSnapshot(context.Background(), handle)
}

func (s snapshots) retainSnapshot(handle string) error {
	return untilFinal(func() error { return backend.RetainSnapshot(context.Background(), s.Backend, handle) })
}

// mustListSnapshots lists snapshots, or skips the test of a backend that no audit lists.
func (s snapshots) mustListSnapshots(t *testing.T) []backend.Held {
	t.Helper()
	needs[backend.SnapshotRetainer](t, s.subject)
	return slices.DeleteFunc(s.mustList(t), func(held backend.Held) bool { return held.Snapshot == "" })
}

func (s snapshots) mustSnapshot(t *testing.T, owner string) *backend.Snapshot {
	t.Helper()
	made, err := s.snapshot(s.request(owner))
	if err != nil {
		t.Fatalf("making a snapshot: %v", err)
	}
	return made
}

func (s snapshots) mustDeleteSnapshot(t *testing.T, handle string) {
	t.Helper()
	if err := untilFinal(func() error { return s.DeleteSnapshot(context.Background(), handle) }); err != nil {
		t.Fatalf("deleting snapshot %s: %v", handle, err)
	}
}
