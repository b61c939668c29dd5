package identity

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func noVolumes() ([]layout.Volume, error) { return nil, nil }

func TestADiskThatSeveralAgentsAcceptAtOnceHasOneIdentity(t *testing.T) {
	for range 50 {
		base := t.TempDir()
		disk := Disk{Name: "fast.0", Path: filepath.Join(base, "fast"), Backend: "fast"}
		accepted := make([]*stowagev1alpha1.DiskIdentity, 8)
		var agents sync.WaitGroup
		for i := range accepted {
			agents.Go(func() {
				there, err := Disks{Base: layout.Base(base)}.Identify(disk, noVolumes)
				if err != nil {
					t.Errorf("an agent fails: %v", err)
				}
				accepted[i] = there
			})
		}
		agents.Wait()
		folder, err := os.Open(disk.Path)
		if err != nil {
			t.Fatal(err)
		}
		marker, err := ReadMarker(folder)
		folder.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, there := range accepted {
			if there == nil || there.ID != marker.ID {
				t.Fatalf("the marker names %s, and an agent accepted %+v", marker.ID, there)
			}
		}
		entries, _ := os.ReadDir(disk.Path)
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), newMarkerName) {
				t.Fatalf("%s is left", entry.Name())
			}
		}
	}
}
