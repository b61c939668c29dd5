package named_test

import (
	"testing"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

func TestANameStandsForAUIDThatNoObjectHas(t *testing.T) {
	of := named.UID("cluster", "disks", "volume", "a")
	volume, snapshot := backend.VolumeID(of, 1), backend.SnapshotID(of)
	if !named.IsVolume(volume) {
		t.Errorf("volume %s was not made for a name", volume)
	}
	for _, handle := range []string{snapshot, "projects/demo/global/snapshots/" + snapshot, "projects/demo/global/images/" + snapshot} {
		if !named.IsSnapshot(handle) {
			t.Errorf("snapshot %s was not made for a name", handle)
		}
	}
	ofObject := types.UID(uuid.NewString())
	for _, id := range []string{
		"", "pvc-", "snapshot-", "a", string(of), "other-" + string(of), backend.VolumeID(ofObject, 1), backend.SnapshotID(ofObject),
		backend.VolumeID(of, 2), volume + "/more", "projects/demo/zones/a/disks/" + volume, snapshot,
	} {
		if named.IsVolume(id) {
			t.Errorf("volume %q was made for a name", id)
		}
		if id != snapshot && named.IsSnapshot(id) {
			t.Errorf("snapshot %q was made for a name", id)
		}
	}
}

func TestTheSameNameStandsForAnotherUIDElsewhere(t *testing.T) {
	seen := map[types.UID]bool{}
	for _, uid := range []types.UID{
		named.UID("cluster", "disks", "volume", "a"), named.UID("other", "disks", "volume", "a"),
		named.UID("cluster", "other", "volume", "a"), named.UID("cluster", "disks", "snapshot", "a"),
		named.UID("cluster", "disks", "volume", "b"),
	} {
		if seen[uid] {
			t.Errorf("%s stands for two names", uid)
		}
		seen[uid] = true
	}
	if !seen[named.UID("cluster", "disks", "volume", "a")] {
		t.Error("a repeat has another UID")
	}
}
