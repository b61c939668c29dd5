package subpath_test

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/subpath"
)

func TestWhatIsMountedAtATargetIsAPartOnlyIfItLiesInTheVolume(t *testing.T) {
	volume := mount.Point{ID: 1, Path: "/pods/volume", Device: "8:1", Root: "/data"}
	inside := mount.Point{ID: 2, Parent: 1, Path: "/pods/volume/disk", Device: "8:2", Root: "/"}
	tests := map[string]struct {
		part  *mount.Point
		state subpath.State
	}{
		"nothing":                              {nil, subpath.Missing},
		"a part":                               {&mount.Point{Device: "8:1", Root: "/data/a"}, subpath.Mounted},
		"what is beside the volume":            {&mount.Point{Device: "8:1", Root: "/other"}, subpath.Stale},
		"a part that was removed":              {&mount.Point{Device: "8:1", Root: "/data/a", RootDeleted: true}, subpath.Stale},
		"a part of what is mounted in it":      {&mount.Point{Device: "8:2", Root: "/logs"}, subpath.Mounted},
		"a removed part of that":               {&mount.Point{Device: "8:2", Root: "/logs", RootDeleted: true}, subpath.Stale},
		"a file system that is not mounted in": {&mount.Point{Device: "8:3", Root: "/"}, subpath.Stale},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			table := mount.Table{volume, inside}
			if test.part != nil {
				part := *test.part
				part.ID, part.Path = 3, "/pods/part"
				table = append(table, part)
			}
			if state := subpath.Inspect(table, volume.Path, "/pods/part"); state != test.state {
				t.Errorf("it is %v", state)
			}
		})
	}
}
