package content

import (
	"bytes"
	"maps"
	"sync/atomic"

	"k8s.io/utils/ptr"
)

// Written is the files that this process last wrote to a volume, if that is known. Its zero value
// is usable, and its methods may be called at once.
type Written struct{ last atomic.Pointer[Files] }

// Write runs what writes these files. After an error, the volume's content is unknown.
func (w *Written) Write(files Files, work func() error) error {
	w.last.Store(nil)
	if err := work(); err != nil {
		return err
	}
	w.last.Store(&files)
	return nil
}

// Has reports whether the volume is known to have these files.
func (w *Written) Has(files Files) bool {
	last := w.last.Load()
	return last != nil && maps.EqualFunc(*last, files, func(a, b File) bool {
		return a.Mode == b.Mode && ptr.Equal(a.Owner, b.Owner) && bytes.Equal(a.Data, b.Data)
	})
}
