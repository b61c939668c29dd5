package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

// reporting is a queue before a driver that answers about its room when it is let.
func reporting(t *testing.T, limit int) (served backend.Backend, asked *atomic.Int32, answer chan struct{}) {
	asked, answer = &atomic.Int32{}, make(chan struct{})
	driver := fake.NewCSI(fake.New())
	driver.SetCapacity(func(backend.CapacityRequest) (backend.ClassCapacity, error) {
		asked.Add(1)
		<-answer
		return backend.ClassCapacity{Available: resource.MustParse("1Gi")}, nil
	}, map[string]string{"zone": "a"})
	return queue.New(t.Context(), nil).Serve(queue.Target{Name: "driver", Limit: limit}, driver, func() {}), asked, answer
}

func capacityIn(served backend.Backend, zone string) (backend.ClassCapacity, error) {
	return served.(backend.ClassCapacityReporter).CapacityOf(context.Background(), backend.CapacityRequest{Class: "c", Topology: map[string]string{"zone": zone}})
}

func TestCallsAboutRoomTakeOneSlotAndVolumesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served, asked, answer := reporting(t, 2)
		for zone := range 10 {
			if _, err := capacityIn(served, fmt.Sprint(zone)); !errors.Is(err, backend.Queued) {
				t.Errorf("it has %v", err)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("%d calls run at once", asked.Load())
		}
		if _, err := served.Provision(t.Context(), backendtest.Request("1")); err != nil {
			t.Errorf("a volume has %v", err)
		}
		close(answer)
		synctest.Wait()
		for zone := range 10 {
			if room, err := capacityIn(served, fmt.Sprint(zone)); err != nil || room.Available.String() != "1Gi" {
				t.Errorf("it has %v, %v", room, err)
			}
		}
	})
}

func TestTopologiesAreAskedForThroughTheQueue(t *testing.T) {
	served, _, _ := reporting(t, 1)
	reporter, can := backend.As[backend.TopologyReporter](served)
	if !can {
		t.Fatal("it can't be asked")
	}
	if all, err := reporter.CapacityTopologies(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("it has %v, %v", all, err)
	}
}

func TestABackendThatReportsNoRoomIsNotAsked(t *testing.T) {
	served := newDesk(t, 1).served("")
	if _, can := backend.As[backend.ClassCapacityReporter](served); can {
		t.Error("it can be asked")
	}
	if _, err := capacityIn(served, "a"); !errors.Is(err, backend.Invalid) {
		t.Errorf("it has %v", err)
	}
}
