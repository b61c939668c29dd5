package operations

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

func TestOperationsAreCountedByTheirOutcome(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	numbers, err := metrics.New(registry, &mounttest.Fake{})
	if err != nil {
		t.Fatal(err)
	}
	operations := New(clocktesting.NewFakeClock(time.Now()), numbers)
	task := Task{Kind: Mounting, Type: "kubernetes.io/nfs", Dir: "dir", Pod: nodetest.SomePod}
	hangs := make(nodetest.Gate)
	operations.Do(t.Context(), task, hangs.Work)

	nodetest.MustServe(t, registry, "stowage_node_operations_running", map[string]float64{"mount kubernetes.io/nfs": 1})
	if oldest := nodetest.MetricsOf(t, registry, "stowage_node_operation_oldest_seconds"); oldest["mount kubernetes.io/nfs"] <= 0 {
		t.Errorf("its age is missing: %v", oldest)
	}
	hangs <- nil
	operations.Wait()
	for _, err := range []error{errors.New("broken"), remote.ErrSilent, volumes.ErrGone, volumes.ErrNotSupported} {
		task.Dir = err.Error()
		operations.Do(t.Context(), task, func(context.Context) error { return err })
	}
	task.Dir, task.Pod = "cancelled", "pod-2"
	operations.Do(t.Context(), task, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	operations.Cancel("pod-2")
	operations.Wait()

	want := map[string]float64{}
	for _, outcome := range []string{metrics.OutcomeOK, metrics.OutcomeFailed, metrics.OutcomeSilent, metrics.OutcomeGone, metrics.OutcomeNotSupported, metrics.OutcomeCancelled} {
		want["mount "+outcome+" kubernetes.io/nfs"] = 1
	}
	nodetest.MustServe(t, registry, "stowage_node_operation_seconds", want)
	nodetest.MustServe(t, registry, "stowage_node_operations_running", map[string]float64{})
}

func TestQueuedOperationsAreCounted(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	numbers, err := metrics.New(registry, &mounttest.Fake{})
	if err != nil {
		t.Fatal(err)
	}
	c := newCrowd(t, numbers)
	c.request(t, "nfs", Slots+3)
	nodetest.MustServe(t, registry, "stowage_node_operations_queued", map[string]float64{"nfs": 3})
	c.Cancel(nodetest.SomePod)
	nodetest.MustServe(t, registry, "stowage_node_operations_queued", map[string]float64{"nfs": 0})
}
