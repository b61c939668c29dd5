// Package measure counts what backends are asked for and how long they take.
//
// It is a decorator: the backend that it returns does what the one inside does.
// The manager serves the numbers with its other metrics.
package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Metrics are the numbers of all backends of a program.
type Metrics struct {
	seconds       *prometheus.HistogramVec
	orphans, lost *prometheus.GaugeVec
	total, used   *prometheus.GaugeVec
	strays        *prometheus.GaugeVec
	forced        *prometheus.CounterVec
}

// New makes the metrics and registers them.
func New(registerer prometheus.Registerer) (*Metrics, error) {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "stowage_backend_operation_seconds",
		Help:    "How long one call to a backend took, by backend, operation and outcome (OK, a kind of error, or Unknown).",
		Buckets: prometheus.ExponentialBuckets(0.005, 4, 8),
	}, []string{"backend", "operation", "outcome"})
	orphans := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stowage_backend_orphans",
		Help: "Volumes that a backend holds and that nothing in the cluster records, as the last audit found them.",
	}, []string{"backend"})
	lost := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stowage_backend_lost_volumes",
		Help: "Volume objects whose storage a backend doesn't hold any more, as the last audit found them.",
	}, []string{"backend"})
	total := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stowage_backend_capacity_bytes",
		Help: "What a backend can hold, as it said last.",
	}, []string{"backend"})
	used := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stowage_backend_used_bytes",
		Help: "What is taken of a backend's capacity, by whomever, as it said last.",
	}, []string{"backend"})
	strays, forced := attachMetrics()
	m := &Metrics{seconds: seconds, orphans: orphans, lost: lost, total: total, used: used, strays: strays, forced: forced}
	var problems []error
	for _, collector := range []prometheus.Collector{seconds, orphans, lost, total, used, strays, forced} {
		problems = append(problems, registerer.Register(collector))
	}
	return m, errors.Join(problems...)
}

// Audited sets what the last audit of a backend found.
func (m *Metrics) Audited(name string, orphans, lost int32) {
	m.orphans.WithLabelValues(name).Set(float64(orphans))
	m.lost.WithLabelValues(name).Set(float64(lost))
}

// Filled sets what a backend can hold and holds.
func (m *Metrics) Filled(name string, space backend.Space) {
	m.total.WithLabelValues(name).Set(float64(space.Total.Value()))
	m.used.WithLabelValues(name).Set(float64(space.Used.Value()))
}

// Measure returns a backend whose calls are measured under a name.
func (m *Metrics) Measure(name string, inner backend.Backend) backend.Backend {
	return &measured{Backend: inner, metrics: m, name: name}
}

// Forget drops the numbers of a backend that is gone.
func (m *Metrics) Forget(name string) {
	of := prometheus.Labels{"backend": name}
	m.seconds.DeletePartialMatch(of)
	m.orphans.Delete(of)
	m.lost.Delete(of)
	m.total.Delete(of)
	m.used.Delete(of)
	m.strays.Delete(of)
	m.forced.Delete(of)
}

type measured struct {
	backend.Backend
	metrics *Metrics
	name    string
}

// Unwrap returns the backend that is measured.
func (m *measured) Unwrap() backend.Backend { return m.Backend }

// Provision measures a call of Provision.
func (m *measured) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	began := time.Now()
	made, err := m.Backend.Provision(ctx, request)
	m.observe("provision", began, err)
	return made, err
}

// Delete measures a call of Delete.
func (m *measured) Delete(ctx context.Context, id string) error {
	began := time.Now()
	err := m.Backend.Delete(ctx, id)
	m.observe("delete", began, err)
	return err
}

// Expand measures a call of Expand.
func (m *measured) Expand(ctx context.Context, id string, capacity resource.Quantity) (backend.Expansion, error) {
	began := time.Now()
	expanded, err := backend.Expand(ctx, m.Backend, id, capacity)
	m.observe("expand", began, err)
	return expanded, err
}

// Retain measures a call of Retain.
func (m *measured) Retain(ctx context.Context, id string) (string, error) {
	began := time.Now()
	place, err := backend.Retain(ctx, m.Backend, id)
	m.observe("retain", began, err)
	return place, err
}

func (m *measured) observe(operation string, began time.Time, err error) {
	m.metrics.seconds.WithLabelValues(m.name, operation, outcome(err)).Observe(time.Since(began).Seconds())
}

func outcome(err error) string {
	switch kind := backend.KindOf(err); {
	case err == nil:
		return "OK"
	case kind == "":
		return "Unknown"
	default:
		return string(kind)
	}
}
