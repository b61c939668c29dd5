package local_test

import (
	"errors"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestAVolumeWhoseAgentWasToldToRemoveItIsNotRetained(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	disks, request := cluster.open(t, LocalBackend("disks")), backendtest.Request("1")
	if _, err := disks.Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	if err := disks.Delete(t.Context(), request.ID); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	if _, err := backend.Retain(t.Context(), disks, request.ID); !errors.Is(err, backend.NotFound) {
		t.Errorf("it answers %v", err)
	}
	if !cluster.volume(t, "1").Spec.RemoveData {
		t.Error("the order was taken back")
	}
}

func TestAnothersVolumeIsNotRetained(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	request := backendtest.Request("1")
	if _, err := cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	if _, err := backend.Retain(t.Context(), cluster.open(t, LocalBackend("others")), request.ID); !errors.Is(err, backend.Conflict) {
		t.Errorf("it answers %v", err)
	}
}
