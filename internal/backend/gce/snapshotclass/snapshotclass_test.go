package snapshotclass_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/snapshotclass"
)

func TestASnapshotHasWhatItsClassSays(t *testing.T) {
	wanted, err := snapshotclass.SnapshotOf(map[string]string{
		"storage-locations": "europe-west3", "labels": "team=shop, tier=gold", "snapshot-type": "snapshots",
	})
	if err != nil || !slices.Equal(wanted.StorageLocations, []string{"europe-west3"}) || !maps.Equal(wanted.Labels, map[string]string{"team": "shop", "tier": "gold"}) {
		t.Errorf("it is %+v (%v)", wanted, err)
	}
	wanted, err = snapshotclass.SnapshotOf(map[string]string{"image-family": "golden", "snapshot-type": "images"})
	if err != nil || !wanted.IsImage || wanted.Family != "golden" {
		t.Errorf("as an image it is %+v (%v)", wanted, err)
	}
	if wanted, err := snapshotclass.SnapshotOf(nil); err != nil || wanted.StorageLocations != nil || wanted.Labels != nil {
		t.Errorf("without parameters it is %+v (%v)", wanted, err)
	}
}

func TestParametersThatMeanNothingAreRefused(t *testing.T) {
	for name, parameters := range map[string]map[string]string{
		"another key":         {"color": "blue"},
		"an archive":          {"snapshot-type": "archives"},
		"a snapshot's family": {"image-family": "golden"},
		"a family's name":     {"snapshot-type": "images", "image-family": "Golden"},
		"two places":          {"storage-locations": "us,eu"},
		"a path":              {"storage-locations": "../x"},
		"a label's key":       {"labels": "Team=shop"},
		"a label's text":      {"labels": "team=a b"},
		"no label":            {"labels": ""},
		"a label of our own":  {"labels": "stowage-backend=other"},
	} {
		if _, err := snapshotclass.SnapshotOf(parameters); !errors.Is(err, backend.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
