// Package snapshotclass reads the parameters of VolumeSnapshotClasses for disks of Google Compute Engine.
package snapshotclass

import (
	"maps"
	"regexp"
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
	// snapshotTypeParameter chooses between snapshots and images.
	snapshotTypeParameter = "snapshot-type"
	standardSnapshots     = "snapshots"
	images                = "images"
	// familyParameter is the family of images.
	familyParameter = "image-family"
	// labelsParameter has labels of snapshots, such as team=shop,tier=gold.
	labelsParameter = "labels"
)

// validFamily is what Google allows.
var validFamily = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// SnapshotOf is a snapshot, or an image, with what the parameters say.
func SnapshotOf(parameters map[string]string) (*cloud.Snapshot, error) {
	wanted := &cloud.Snapshot{Snapshot: &compute.Snapshot{}, IsImage: parameters[snapshotTypeParameter] == images}
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
		case key == familyParameter && wanted.IsImage && validFamily.MatchString(value):
			wanted.Family = value
		case key == familyParameter:
			return nil, backend.Invalid.Errorf("the parameter %s of the VolumeSnapshotClass is %.100q: it is for a class with %s: %s, and has lower case letters, digits and '-'",
				key, value, snapshotTypeParameter, images)
		case key != snapshotTypeParameter:
			return nil, backend.Invalid.Errorf("the VolumeSnapshotClass has the parameter %.100q, which backends of kind gce don't know: use a class with %s, %s, %s or %s at most",
				key, locationParameter, labelsParameter, snapshotTypeParameter, familyParameter)
		case value != standardSnapshots && !wanted.IsImage:
			return nil, backend.Invalid.Errorf("the parameter %s of the VolumeSnapshotClass is %.100q: write %s or %s", key, value, standardSnapshots, images)
		}
	}
	return wanted, nil
}
