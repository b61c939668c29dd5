package queue_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

// measuredWorld has two backends before the same storage: one that is called through the
// queue, and one with callers that wait.
type measuredWorld struct {
	gather         func() []*dto.Metric
	inner          *fake.Backend
	served, direct backend.Backend
}

func measured(t *testing.T) measuredWorld {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	q, target := queue.New(t.Context(), m), queue.Target{Name: "StorageBackend disks", Metric: "disks", Limit: 1}
	inner := fake.New()
	gather := func() []*dto.Metric {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if len(families) == 0 {
			return nil
		}
		return families[0].GetMetric()
	}
	return measuredWorld{gather: gather, inner: inner, served: q.Serve(target, inner, func() {}), direct: q.Direct(target, inner)}
}

// labels are backend, operation, outcome and the number of calls.
func labels(metrics []*dto.Metric) (found []string) {
	for _, metric := range metrics {
		var values []string
		for _, label := range metric.GetLabel() {
			values = append(values, label.GetValue())
		}
		found = append(found, strings.Join(values, " ")+" "+strings.Repeat("I", int(metric.GetHistogram().GetSampleCount())))
	}
	return found
}

func TestEachCallIsMeasuredByOperationAndOutcome(t *testing.T) {
	node := backend.NodeIdentity{Name: "node-1"}
	const disk = "projects/p/zones/z/disks/legacy"
	want := []string{
		"disks attach OK II", "disks attachments OK I", "disks delete OK I", "disks detach OK II", "disks expand OK I",
		"disks is-attached OK I", "disks observe-node OK I",
		"disks provision Exhausted I", "disks provision OK I", "disks provision Unknown I", "disks retain OK I",
	}
	for _, way := range []string{"through the queue", "by a caller that waits"} {
		t.Run(way, func(t *testing.T) {
			w := measured(t)
			gather, inner, opened := w.gather, w.inner, w.served
			if way != "through the queue" {
				opened = w.direct
			}
			inner.AddExisting(disk)
			inner.FailNext(nil, backend.Exhausted.Errorf("full"), errors.New("broken pipe"))
			for range 3 {
				_, _ = opened.Provision(t.Context(), backendtest.Request("1"))
			}
			id := backendtest.Request("1").ID
			_, _ = backend.Expand(t.Context(), opened, backend.ExpandRequest{ID: id, Capacity: resource.MustParse("2Mi")})
			attacher, _ := backend.As[backend.Attacher](opened)
			lister, _ := backend.As[backend.AttachmentLister](opened)
			for _, one := range []string{id, disk} {
				_, _ = attacher.Attach(t.Context(), backend.AttachRequest{ID: one, Node: node})
			}
			_, _ = attacher.IsAttached(t.Context(), id, node)
			_, _ = lister.Attachments(t.Context())
			_, _ = backend.Observe(t.Context(), opened, node)
			for _, one := range []string{id, disk} {
				_ = attacher.Detach(t.Context(), one, node)
			}
			_, _ = backend.Retain(t.Context(), opened, id)
			_ = opened.Delete(t.Context(), id)
			if found := labels(gather()); !slices.Equal(found, want) {
				t.Errorf("measured are\n%s", strings.Join(found, "\n"))
			}
		})
	}
}

func TestTheTimeInTheQueueIsNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := measured(t)
		gather, inner, served := w.gather, w.inner, w.served
		release := inner.Hold()
		_, _ = served.Provision(t.Context(), request("1", "a"))
		_, _ = served.Provision(t.Context(), request("2", "a"))
		<-time.After(5 * time.Second)
		release()
		synctest.Wait()
		_, _ = served.Provision(t.Context(), request("2", "a"))
		synctest.Wait()
		found := gather()
		if len(found) != 1 || found[0].GetHistogram().GetSampleCount() != 2 {
			t.Fatalf("measured are %v", labels(found))
		}
		// The first call was held for five seconds, and the second not at all.
		if took := found[0].GetHistogram().GetSampleSum(); took < 5 || took > 9 {
			t.Errorf("both took %f seconds", took)
		}
	})
}

func TestTheTimeInTheQueueAndTheCallsInItHaveMetricsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		m, err := metrics.New(registry)
		if err != nil {
			t.Fatal(err)
		}
		inner := fake.New()
		served := queue.New(t.Context(), m).Serve(queue.Target{Name: "StorageBackend disks", Metric: "disks", Limit: 1}, inner, func() {})
		release := inner.Hold()
		_, _ = served.Provision(t.Context(), request("1", "a"))
		_, _ = served.Provision(t.Context(), request("2", "a"))
		if waiting := metricNamed(t, registry, "stowage_backend_queue_calls").GetGauge().GetValue(); waiting != 1 {
			t.Errorf("%f calls wait beside the one that runs", waiting)
		}
		<-time.After(5 * time.Second)
		release()
		synctest.Wait()
		_, _ = served.Provision(t.Context(), request("2", "a"))
		synctest.Wait()
		if waiting := metricNamed(t, registry, "stowage_backend_queue_calls").GetGauge().GetValue(); waiting != 0 {
			t.Errorf("%f calls wait at the end", waiting)
		}
		took := metricNamed(t, registry, "stowage_backend_queue_seconds").GetHistogram()
		if took.GetSampleCount() != 2 || took.GetSampleSum() < 5 || took.GetSampleSum() > 9 {
			t.Errorf("the time in the queue is %v", took)
		}
	})
}

func metricNamed(t *testing.T, registry *prometheus.Registry, name string) *dto.Metric {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0]
		}
	}
	t.Fatalf("%s is not served", name)
	return nil
}

func TestACallToWhatHasNoMetricIsNotMeasured(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	inner := &janitor{gate: make(chan struct{})}
	close(inner.gate)
	recycler := queue.New(t.Context(), m).ServeRecycler(queue.Target{Name: "NFS server a", Limit: 1}, inner, func() {})
	if err := recycler.Recycle(t.Context(), backend.Recycling{Volume: "scratch"}); err != nil {
		t.Error(err)
	}
	if families, err := registry.Gather(); err != nil || len(families) > 0 {
		t.Errorf("measured are %v (%v)", families, err)
	}
}

func TestACallThatPanicsIsMeasured(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	served := queue.New(t.Context(), m).Serve(queue.Target{Metric: "disks"}, panicking{fake.New()}, func() {})
	_ = served.Delete(t.Context(), "v")
	families, err := registry.Gather()
	if err != nil || len(families) == 0 || !slices.Equal(labels(families[0].GetMetric()), []string{"disks delete Unknown I"}) {
		t.Errorf("measured are %v (%v)", families, err)
	}
}

func TestADirectBackendKeepsTheContractOfAttaching(t *testing.T) {
	backendtest.AttachContract(t, func(t *testing.T) backendtest.Machines {
		w := measured(t)
		inner, direct := w.inner, w.direct
		inner.SetMachine(node(9), backend.MachineGone)
		return backendtest.Machines{
			Backend: direct, Nodes: [2]backend.NodeIdentity{node(1), node(2)}, Absent: node(9),
			Stop:   func(node backend.NodeIdentity) { inner.SetMachine(node, backend.MachineStopped) },
			Remove: func(node backend.NodeIdentity) { inner.SetMachine(node, backend.MachineGone) },
		}
	})
}
