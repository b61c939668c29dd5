package room

import (
	"time"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// recentFor is how long a sum of what a disk's volumes have holds.
const recentFor = time.Second

// recent is the room of a disk when its volumes were last summed up, less what new volumes were given since.
type recent struct {
	Room
	summed time.Time
}

// give counts the room of a new volume. A whole image takes it up at once, and all others as they are written.
func (r *recent) give(volume layout.Volume) {
	r.given += volume.Bytes
	if volume.Image != nil && !volume.Image.Sparse && !volume.Copy {
		r.free -= volume.Bytes
	} else {
		r.unwritten += volume.Bytes
	}
}
