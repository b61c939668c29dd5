package metrics_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
)

// What dashboards and alerts of administrators name: it doesn't change.
var served = map[string]string{
	"stowage_backend_operation_seconds":     "backend operation outcome",
	"stowage_backend_queue_seconds":         "backend",
	"stowage_backend_queue_calls":           "backend",
	"stowage_backend_orphans":               "backend",
	"stowage_backend_lost_volumes":          "backend",
	"stowage_backend_capacity_bytes":        "backend",
	"stowage_backend_used_bytes":            "backend",
	"stowage_backend_stray_attachments":     "backend",
	"stowage_backend_forced_detaches_total": "backend",
}

func TestAllMetricsHaveTheirNamesAndLabelsUntilTheBackendIsGone(t *testing.T) {
	registry, m := newMetrics(t)
	m.Called("disks", "provision", time.Second, nil)
	m.Began("disks", time.Second)
	m.Waiting("disks", 3)
	m.Audited("disks", 2, 1)
	m.Filled("disks", backend.Space{Total: resource.MustParse("3"), Used: resource.MustParse("2")})
	m.Compared("disks", 2)
	m.Forced("disks")

	found := map[string]string{}
	for _, family := range gather(t, registry) {
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		found[family.GetName()] = strings.Join(labels, " ")
	}
	if !maps.Equal(found, served) {
		t.Errorf("served are %v", found)
	}

	m.Forget("disks")
	if left := gather(t, registry); len(left) != 0 {
		t.Errorf("%v is left of a backend that is gone", left)
	}
}

func TestCallsAreCountedByOutcome(t *testing.T) {
	registry, m := newMetrics(t)
	for _, err := range []error{nil, backend.Exhausted.Errorf("full"), errors.New("broken pipe"), nil} {
		m.Called("disks", "provision", time.Second, err)
	}
	var found []string
	for _, metric := range gather(t, registry)[0].GetMetric() {
		found = append(found, metric.GetLabel()[2].GetValue())
	}
	if want := []string{"Exhausted", "OK", "Unknown"}; !slices.Equal(found, want) {
		t.Errorf("counted are %v", found)
	}
}

func TestTheResultOfAnAuditIsServed(t *testing.T) {
	registry, m := newMetrics(t)
	m.Audited("disks", 2, 1)
	found := map[string]float64{}
	for _, family := range gather(t, registry) {
		found[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
	}
	if want := map[string]float64{"stowage_backend_orphans": 2, "stowage_backend_lost_volumes": 1}; !maps.Equal(found, want) {
		t.Errorf("served are %v", found)
	}
}

func TestWithoutMetricsNothingIsCounted(_ *testing.T) {
	var none *metrics.Metrics
	none.Called("disks", "provision", time.Second, nil)
}

func newMetrics(t *testing.T) (*prometheus.Registry, *metrics.Metrics) {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	return registry, m
}

func gather(t *testing.T, registry *prometheus.Registry) []*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}
