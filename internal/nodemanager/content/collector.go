package content

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// collector collects the files of one volume.
type collector struct {
	reader     Reader
	pod        *corev1.Pod
	projection projection
	found      map[string]found
	renew      time.Time
}

// projection is the sources of a volume.
type projection struct {
	sources []corev1.VolumeProjection
	// mode and user are the defaults of files.
	mode int32
	user *int64
}

// found is a file, and its origin for errors.
type found struct {
	File
	origin string
	// chosen: the pod's spec has its path, which isn't just the name of a key.
	chosen bool
}

// put adds a file at a path. Two files with the same path in the pod's spec are an error. A key
// of a whole object gives way to a later source, as in the kubelet.
func (c *collector) put(at string, file found) error {
	clean, err := checkPath(at)
	if err != nil {
		return fmt.Errorf("placing %s: %w", file.origin, err)
	}
	before, taken := c.found[clean]
	if taken && before.chosen && file.chosen {
		return fmt.Errorf("%s and %s both have the path %s: give each a path of its own", before.origin, file.origin, clean)
	}
	c.found[clean] = file
	return nil
}

// files returns all files. No file can lie below another.
func (c *collector) files() (Files, error) {
	files := make(Files, len(c.found))
	for _, at := range slices.Sorted(maps.Keys(c.found)) {
		for above := path.Dir(at); above != "."; above = path.Dir(above) {
			if other, taken := c.found[above]; taken {
				return nil, fmt.Errorf("%s has the path %s, which lies below %s, the path of %s: choose another path for one of them",
					c.found[at].origin, at, above, other.origin)
			}
		}
		files[at] = c.found[at].File
	}
	return files, nil
}

// file returns a file, with the volume's mode and owner where it has none.
func (c *collector) file(data []byte, mode *int32, user *int64) File {
	if user == nil {
		user = c.projection.user
	}
	return File{Data: data, Mode: os.FileMode(ptr.Deref(mode, c.projection.mode)).Perm(), Owner: user}
}
