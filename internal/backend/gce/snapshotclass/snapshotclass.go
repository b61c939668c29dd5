// Package snapshotclass reads the parameters of VolumeSnapshotClasses for disks of Google Compute Engine.
package snapshotclass

import (
	"maps"
	"slices"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
)

// Parameters of a VolumeSnapshotClass, by the names of Google's own driver.
const (
	// locationParameter is the region, or multi-region, that keeps snapshots.
	locationParameter = "storage-locations"
	// snapshotTypeParameter has one value.
	snapshotTypeParameter = "snapshot-type"
	standardSnapshots     = "snapshots"
	// labelsParameter has labels of snapshots, such as team=shop,tier=gold.
	labelsParameter = "labels"
)

// SnapshotOf is a snapshot with what the parameters say.
func SnapshotOf(parameters map[string]string) (*compute.Snapshot, error) {
	wanted := &compute.Snapshot{}
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		value := parameters[key]
		switch {
		case key == locationParameter && cloud.ValidZone.MatchString(value):
			wanted.StorageLocations = []string{value}
		case key == locationParameter:
			return nil, backend.Invalid.Errorf("the parameter %s of the VolumeSnapshotClass is %.100q: name one region, such as europe-west3, or multi-region", key, value)
		case key == labelsParameter:
			var err error
			if wanted.Labels, err = labels.Of("the parameter "+labelsParameter+" of the VolumeSnapshotClass", value); err != nil {
				return nil, err
			}
		case key != snapshotTypeParameter:
			return nil, backend.Invalid.Errorf("the VolumeSnapshotClass has the parameter %.100q, which backends of kind gce don't know: use a class with %s, %s or %s at most",
				key, locationParameter, labelsParameter, snapshotTypeParameter)
		case value != standardSnapshots:
			return nil, backend.Invalid.Errorf("the parameter %s of the VolumeSnapshotClass is %.100q: only %s are made", key, value, standardSnapshots)
		}
	}
	return wanted, nil
}
