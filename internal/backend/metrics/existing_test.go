package metrics_test

import (
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
)

func TestCallsAboutExistingDisksAreMeasured(t *testing.T) {
	const disk = "projects/p/zones/z/disks/legacy"
	registry := prometheus.NewRegistry()
	metrics, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	inner, node := fake.New(), backend.NodeIdentity{Name: "node-1"}
	inner.AddExisting(disk)
	attacher, can := backend.As[backend.ExistingAttacher](metrics.Measure("disks", inner))
	if !can {
		t.Fatal("it attaches none")
	}
	if _, err := attacher.Existing().Attach(t.Context(), backend.AttachRequest{ID: disk, Node: node}); err != nil || len(inner.ExistingOn(disk)) != 1 {
		t.Errorf("it is on %v (%v)", inner.ExistingOn(disk), err)
	}
	if err := attacher.Existing().Detach(t.Context(), disk, node); err != nil || len(inner.ExistingOn(disk)) != 0 {
		t.Errorf("it is on %v (%v)", inner.ExistingOn(disk), err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 2 {
		t.Errorf("measured was %v (%v)", families, err)
	}
	if methods := reflect.TypeOf(attacher.Existing()).NumMethod(); methods != 3 { // Attach, Detach, and IsAttached, which only looks
		t.Errorf("there are %d ways to do something to an existing disk", methods)
	}
}
