package program

import (
	"slices"

	"github.com/go-logr/logr"
)

// lazySink keeps the values of a logger as they are until something is logged. Every reconcile gets
// a logger with values of its own, and most say nothing. To encode those values each time would be
// a tenth of the manager's allocations.
type lazySink struct {
	sink   logr.LogSink
	values []any
}

// lazily makes a logger lazy.
func lazily(log logr.Logger) logr.Logger { return logr.New(lazySink{sink: log.GetSink()}) }

// Init implements logr.LogSink. The sink behind was initialized when its own
// logger was made.
func (s lazySink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s lazySink) Enabled(level int) bool { return s.sink.Enabled(level) }

// Info implements logr.LogSink.
func (s lazySink) Info(level int, message string, values ...any) {
	s.sink.Info(level, message, slices.Concat(s.values, values)...)
}

// Error implements logr.LogSink.
func (s lazySink) Error(err error, message string, values ...any) {
	s.sink.Error(err, message, slices.Concat(s.values, values)...)
}

// WithValues implements logr.LogSink.
func (s lazySink) WithValues(values ...any) logr.LogSink {
	return lazySink{sink: s.sink, values: slices.Concat(s.values, values)}
}

// WithName implements logr.LogSink.
func (s lazySink) WithName(name string) logr.LogSink {
	return lazySink{sink: s.sink.WithName(name), values: s.values}
}
