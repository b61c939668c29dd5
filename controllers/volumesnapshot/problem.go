package volumesnapshot

import "fmt"

// problem is why a VolumeSnapshot isn't ready, and what would help.
type problem struct{ reason, text string }

func newProblem(reason, format string, arguments ...any) error {
	return &problem{reason, fmt.Sprintf(format, arguments...)}
}

// Error implements error.
func (p *problem) Error() string { return p.text }
