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
