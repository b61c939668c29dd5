package snapshots

import "fmt"

// Problem is why a VolumeSnapshot, or a group of them, isn't ready, and what would help.
type Problem struct{ Event, Text string }

// NewProblem makes one. The first is the reason of its event.
func NewProblem(reason, format string, arguments ...any) error {
	return &Problem{reason, fmt.Sprintf(format, arguments...)}
}

// Error implements error.
func (p *Problem) Error() string { return p.Text }

// NoDefault is the problem of an object without a class whose driver has not exactly one default class.
func NoDefault(reason, kind string, found int, driver, annotation string) error {
	return NewProblem(reason, "%d %sClasses of driver %.200q have the annotation %s: have one class with it, or name a class in a new %s",
		found, kind, driver, annotation, kind)
}
