package program

import (
	"github.com/go-logr/logr"

	"github.com/stowage-dev/stowage/internal/effect"
)

// quietSink is for the lines that controller-runtime writes itself. They are for developers, and
// one manager has a hundred of them when it starts.
type quietSink struct{ logr.LogSink }

// Quiet returns the logger for a controller manager. Its information is logged at level 1, and a
// reconciler's error only if it differs from the previous one of the object.
func Quiet(log logr.Logger) logr.Logger { return logr.New(quietSink{log.GetSink()}) }

// Enabled implements logr.LogSink.
func (s quietSink) Enabled(level int) bool { return s.LogSink.Enabled(level + 1) }

// Info implements logr.LogSink.
func (s quietSink) Info(level int, message string, values ...any) {
	s.LogSink.Info(level+1, message, values...)
}

// Error implements logr.LogSink.
func (s quietSink) Error(err error, message string, values ...any) {
	if !effect.IsRepeated(err) {
		s.LogSink.Error(err, message, values...)
	}
}

// WithValues implements logr.LogSink.
func (s quietSink) WithValues(values ...any) logr.LogSink {
	return quietSink{s.LogSink.WithValues(values...)}
}

// WithName implements logr.LogSink.
func (s quietSink) WithName(name string) logr.LogSink { return quietSink{s.LogSink.WithName(name)} }
