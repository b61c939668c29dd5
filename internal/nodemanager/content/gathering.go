package content

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// gathering is the files of one volume while they are found.
type gathering struct {
	reader Reader
	pod    *corev1.Pod
	recipe recipe
	found  map[string]found
	renew  time.Time
}

// found is a file, and where it comes from, for errors.
type found struct {
	File
	origin string
	// chosen: the pod chose its path, which isn't just the name of a key.
	chosen bool
}

// add finds the files of one source.
func (g *gathering) add(ctx context.Context, source corev1.VolumeProjection) error {
	switch {
	case source.ConfigMap != nil:
		return g.addConfigMap(ctx, source.ConfigMap)
	case source.Secret != nil:
		return g.addSecret(ctx, source.Secret)
	case source.DownwardAPI != nil:
		return g.addDownwardAPI(ctx, source.DownwardAPI.Items)
	case source.ServiceAccountToken != nil:
		return g.addToken(ctx, source.ServiceAccountToken)
	case source.ClusterTrustBundle != nil:
		return fmt.Errorf("a projected volume with a clusterTrustBundle is %w", ErrNotSupported)
	case source.PodCertificate != nil:
		return fmt.Errorf("a projected volume with a podCertificate is %w", ErrNotSupported)
	default:
		return fmt.Errorf("a projected volume with a source of this type is %w", ErrNotSupported)
	}
}

// put notes a file at a path. Of two that a pod put at the same path on purpose, none
// can be meant; a key of a whole object gives way to a later source, as in the kubelet.
func (g *gathering) put(at string, file found) error {
	clean, err := checkPath(at)
	if err != nil {
		return fmt.Errorf("placing %s: %w", file.origin, err)
	}
	before, taken := g.found[clean]
	if taken && before.chosen && file.chosen {
		return fmt.Errorf("%s and %s both have the path %s: give each a path of its own", before.origin, file.origin, clean)
	}
	g.found[clean] = file
	return nil
}

// files is all that was found. No file can lie below another.
func (g *gathering) files() (Files, error) {
	files := make(Files, len(g.found))
	for _, at := range slices.Sorted(maps.Keys(g.found)) {
		for above := path.Dir(at); above != "."; above = path.Dir(above) {
			if other, taken := g.found[above]; taken {
				return nil, fmt.Errorf("%s has the path %s, which lies below %s, the path of %s: choose another path for one of them",
					g.found[at].origin, at, above, other.origin)
			}
		}
		files[at] = g.found[at].File
	}
	return files, nil
}

// file is one whose mode and owner may be those of the whole volume.
func (g *gathering) file(data []byte, mode *int32, user *int64) File {
	if user == nil {
		user = g.recipe.user
	}
	return File{Data: data, Mode: os.FileMode(orDefault(mode, g.recipe.mode)).Perm(), Owner: user}
}
