package poddir

import (
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Mounted returns the mount points in a pod's directory.
func (t Tree) Mounted(table mount.Table, uid types.UID) []string {
	var paths []string
	below := t.PodDir(uid) + string(filepath.Separator)
	for _, point := range table {
		if strings.HasPrefix(point.Path, below) {
			// A copy: the paths of a table share the text of all of it.
			paths = append(paths, strings.Clone(point.Path))
		}
	}
	return paths
}
