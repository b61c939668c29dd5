package effect

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The metrics of a program's effects. They are counted from its start, also before they are served.
var (
	total = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stowage_effects_total",
		Help: "What was done, by effect: bound, provisioned, deleted, attached, detached, mounted, and so on, as in the log.",
	}, []string{"effect"})
	seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "stowage_effect_seconds",
		Help: "How long an effect took since it was requested: since a claim was created until it is bound, since a volume object was " +
			"deleted until its storage is gone. The duration of others is in the log, too.",
		Buckets: prometheus.ExponentialBuckets(0.01, 4, 10),
	}, []string{"effect"})
)

// Serve registers the metrics of effects.
func Serve(registerer prometheus.Registerer) error {
	return errors.Join(registerer.Register(total), registerer.Register(seconds))
}

// Count counts an effect, and its duration unless began is zero.
func Count(what string, began time.Time) {
	total.WithLabelValues(what).Inc()
	if !began.IsZero() {
		seconds.WithLabelValues(what).Observe(max(0, time.Since(began)).Seconds())
	}
}
