package volumes

import "context"

// Amount is how much of something a volume has. Drivers that don't know a number leave it 0.
type Amount struct{ Total, Available, Used int64 }

// Usage is how much of a volume is used. What isn't known is nil.
type Usage struct {
	// Bytes are its bytes, and Inodes its files and directories.
	Bytes, Inodes *Amount
}

// Measurer is a Plugin of which some volumes are measured by their drivers. What others use is what
// their file systems say.
type Measurer interface {
	Plugin
	// Measures reports whether a volume is one of them.
	Measures(spec Spec) bool
	// Measure returns how much of a published volume is used. It takes no lock, and may run while
	// another method runs for the volume. The error wraps ErrNotSupported if the driver measures
	// nothing.
	Measure(ctx context.Context, spec Spec, dir string) (Usage, error)
}
