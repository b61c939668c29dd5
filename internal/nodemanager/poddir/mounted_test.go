package poddir

import (
	"slices"
	"testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

func TestTheMountPointsInAPodsDirectory(t *testing.T) {
	tree := Tree{root: "/agent"}
	table := nodetest.TableOf("/", "/agent/pods/pod-1/volumes/a/b", "/agent/pods/pod-10/volumes/a/b", "/agent/disks/pod-1", "/agent/pods/pod-1/volume-subpaths/c")
	want := []string{"/agent/pods/pod-1/volumes/a/b", "/agent/pods/pod-1/volume-subpaths/c"}
	if got := tree.Mounted(table, "pod-1"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
