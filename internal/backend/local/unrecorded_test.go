package local_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/local"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestDataWithoutANodeVolumeIsListedWithItsNode(t *testing.T) {
	cluster, disks, id := deleting(t)
	cluster.reports(t, "pvc-lost", id)

	held, err := disks.(backend.Lister).List(t.Context())

	if err != nil || len(held) != 2 {
		t.Fatalf("it holds %v, error %v", held, err)
	}
	if held[0].ID != id || held[0].Node != "" {
		t.Errorf("what a NodeVolume records is held as %v", held[0])
	}
	if held[1] != (backend.Held{ID: "pvc-lost", Node: "node-1"}) {
		t.Errorf("what none records is held as %v", held[1])
	}
}

func TestUnrecordedDataIsListedWithItsClaim(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	disks, claim := cluster.open(t, LocalBackend("disks")), backendtest.Request("1").Claim
	disk := cluster.reports(t, "pvc-1")
	found := &disk.Status.Unrecorded.Volumes[0]
	found.ClaimNamespace, found.ClaimName, found.ClaimUID = claim.Namespace, claim.Name, claim.UID
	if err := cluster.Update(t.Context(), disk); err != nil {
		t.Fatal(err)
	}

	held, err := disks.(backend.Lister).List(t.Context())

	if err != nil || len(held) != 1 || held[0] != (backend.Held{ID: "pvc-1", Claim: claim, Node: "node-1"}) {
		t.Errorf("it holds %v, error %v", held, err)
	}
}

func TestDataWithoutANodeVolumeIsNotGone(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	disks := cluster.open(t, LocalBackend("disks"))
	cluster.reports(t, "pvc-1")

	place, err := backend.Retain(t.Context(), disks, "pvc-1")

	if want := base + "/disks/pvc-1 on node node-1"; err != nil || place != want {
		t.Errorf("it lies in %q, error %v", place, err)
	}
	_, err = backend.Retain(t.Context(), disks, "pvc-2")
	expectError(t, err, backend.NotFound, "no node's agent found the volume on its disk")
	for id, want := range map[string]string{"pvc-1": place, "pvc-2": ""} {
		if remains, err := backend.Remains(t.Context(), disks, id); err != nil || remains != want {
			t.Errorf("of %s remains %q, error %v", id, remains, err)
		}
	}
}

func TestVolumesThatAreRemovedAtTheSameTimeShareALookAtTheDisks(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	cluster.disk(t, "disks", "node-1", "100Gi", "100Gi")
	cluster.reports(t, "pvc-1")
	synctest.Test(t, func(t *testing.T) {
		live := &heldLists{Reader: cluster, let: make(chan struct{})}
		disks, err := local.NewKind(cluster, live, base).Open(LocalBackend("disks"))
		if err != nil {
			t.Fatal(err)
		}
		var looks sync.WaitGroup
		for range 5 {
			looks.Go(func() {
				if remains, err := backend.Remains(t.Context(), disks, "pvc-1"); err != nil || remains == "" {
					t.Errorf("remains %q, error %v", remains, err)
				}
			})
		}
		synctest.Wait()
		if begun := live.begun.Load(); begun != 1 {
			t.Errorf("%d lists were in flight", begun)
		}
		close(live.let)
		looks.Wait()
		if begun := live.begun.Load(); begun > 2 {
			t.Errorf("there were %d lists: a second is for all that came during the first", begun)
		}
	})
}

// heldLists reads, but a list waits until it is let go on.
type heldLists struct {
	client.Reader
	let   chan struct{}
	begun atomic.Int32
}

func (h *heldLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	h.begun.Add(1)
	<-h.let
	return h.Reader.List(ctx, list, options...)
}
