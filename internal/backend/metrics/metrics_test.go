package metrics_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
)

func TestAMeasuredBackendKeepsTheContract(t *testing.T) {
	metrics, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	backendtest.Contract(t, func(*testing.T) (backend.Backend, func(string) bool) {
		inner := fake.New()
		return metrics.Measure("disks", inner), inner.Has
	})
}

func TestCallsAreCountedByOutcome(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	inner := fake.New()
	measured := metrics.Measure("disks", inner)
	inner.FailNext(nil, backend.Exhausted.Errorf("full"), errors.New("broken pipe"))
	for range 3 {
		_, _ = measured.Provision(t.Context(), backendtest.Request("1"))
	}
	_, _ = backend.Expand(t.Context(), measured, backendtest.Request("1").ID, resource.MustParse("2Mi"))
	_ = measured.Delete(t.Context(), backendtest.Request("1").ID)

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, metric := range families[0].GetMetric() {
		var labels []string
		for _, label := range metric.GetLabel() {
			labels = append(labels, label.GetValue())
		}
		told = append(told, strings.Join(labels, " "))
	}
	want := "disks delete OK\ndisks expand OK\ndisks provision Exhausted\ndisks provision OK\ndisks provision Unknown"
	if got := strings.Join(told, "\n"); got != want {
		t.Errorf("it tells of\n%s", got)
	}

	metrics.Forget("disks")
	if left, _ := registry.Gather(); len(left) != 0 {
		t.Errorf("%v is left of a backend that is gone", left)
	}
}

func TestWhatAnAuditFoundIsServedUntilTheBackendIsGone(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	metrics.Audited("disks", 2, 1)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]float64{}
	for _, family := range families {
		told[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
	}
	if want := map[string]float64{"stowage_backend_orphans": 2, "stowage_backend_lost_volumes": 1}; !maps.Equal(told, want) {
		t.Errorf("it tells %v", told)
	}

	metrics.Forget("disks")
	if left, _ := registry.Gather(); len(left) != 0 {
		t.Errorf("%v is left of a backend that is gone", left)
	}
}
