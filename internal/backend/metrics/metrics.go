// Package metrics counts the calls to backends, how long they take, and what backends hold.
//
// The queue reports each call; the reconcilers report the state of a backend. The manager serves
// these metrics with its others. The package decides nothing and calls no backend.
package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Metrics are those of all backends of a program. All methods can be called at once.
type Metrics struct {
	seconds       *prometheus.HistogramVec
	queueSeconds  *prometheus.HistogramVec
	queued        *prometheus.GaugeVec
	orphans, lost *prometheus.GaugeVec
	total, used   *prometheus.GaugeVec
	dangling      *prometheus.GaugeVec
	forced        *prometheus.CounterVec
}

// New makes the metrics and registers them.
func New(registerer prometheus.Registerer) (*Metrics, error) {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "stowage_backend_operation_seconds",
		Help:    "How long one call to a backend took, by backend, operation and outcome (OK, a kind of error, or Unknown).",
		Buckets: prometheus.ExponentialBuckets(0.005, 4, 8),
	}, []string{"backend", "operation", "outcome"})
	queueSeconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "stowage_backend_queue_seconds",
		Help:    "How long a call to a backend waited in its queue until it began.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
	}, []string{"backend"})
	m := &Metrics{
		seconds: seconds, queueSeconds: queueSeconds,
		queued:  gauge("stowage_backend_queue_calls", "Calls that wait in a backend's queue, as maxConcurrentOperations others run."),
		orphans: gauge("stowage_backend_orphans", "Volumes and snapshots that a backend holds and that nothing in the cluster records, as the last audit found them."),
		lost:    gauge("stowage_backend_lost_volumes", "Volume objects of which a backend does not hold the storage any more, as the last audit found them."),
		total:   gauge("stowage_backend_capacity_bytes", "What a backend can hold, as it reported last."),
		used:    gauge("stowage_backend_used_bytes", "How much of a backend's capacity is used, by Stowage or others, as it reported last."),
		dangling: gauge("stowage_backend_stray_attachments",
			"Volumes that are attached to a machine though no VolumeAttachment asks for it, as the last comparison found them."),
		forced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stowage_backend_forced_detaches_total",
			Help: "Volumes that were detached from a node that had not released them.",
		}, []string{"backend"}),
	}
	var problems []error
	for _, collector := range []prometheus.Collector{m.seconds, m.queueSeconds, m.queued, m.orphans, m.lost, m.total, m.used, m.dangling, m.forced} {
		problems = append(problems, registerer.Register(collector))
	}
	return m, errors.Join(problems...)
}

func gauge(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"backend"})
}

// Called counts a call to the backend of this name, its duration, and its error's kind. Nil metrics
// count nothing.
func (m *Metrics) Called(name, operation string, took time.Duration, err error) {
	if m != nil {
		m.seconds.WithLabelValues(name, operation, outcome(err)).Observe(took.Seconds())
	}
}

// Began counts how long a call waited in its backend's queue. Nil metrics count nothing.
func (m *Metrics) Began(name string, after time.Duration) {
	if m != nil {
		m.queueSeconds.WithLabelValues(name).Observe(after.Seconds())
	}
}

// Waiting sets how many calls wait in a backend's queue. Nil metrics set nothing.
func (m *Metrics) Waiting(name string, calls int) {
	if m != nil {
		m.queued.WithLabelValues(name).Set(float64(calls))
	}
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

// Audited sets what the last audit of a backend found.
func (m *Metrics) Audited(name string, orphans, lost int32) {
	m.orphans.WithLabelValues(name).Set(float64(orphans))
	m.lost.WithLabelValues(name).Set(float64(lost))
}

// Filled sets the size of a backend, and how much of it is used.
func (m *Metrics) Filled(name string, space backend.Space) {
	m.total.WithLabelValues(name).Set(float64(space.Total.Value()))
	m.used.WithLabelValues(name).Set(float64(space.Used.Value()))
}

// Compared sets what the last comparison of attachments with a backend found.
func (m *Metrics) Compared(name string, dangling int) {
	m.dangling.WithLabelValues(name).Set(float64(dangling))
}

// Forced counts a forced detach.
func (m *Metrics) Forced(name string) { m.forced.WithLabelValues(name).Inc() }

// Forget drops the metrics of a backend that is gone.
func (m *Metrics) Forget(name string) {
	of := prometheus.Labels{"backend": name}
	m.seconds.DeletePartialMatch(of)
	m.queueSeconds.Delete(of)
	for _, vector := range []*prometheus.GaugeVec{m.queued, m.orphans, m.lost, m.total, m.used, m.dangling} {
		vector.Delete(of)
	}
	m.forced.Delete(of)
}
