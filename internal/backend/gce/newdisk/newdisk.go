// Package newdisk makes disks of Google Compute Engine: it decides from a claim's request, its classes and the backend's spec
// what a new disk is like, and explains why the cloud refused to make it. In which place an earlier call made the disk, or
// whether there is one, its caller knows.
package newdisk

import (
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/diskclass"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/settings"
)

// Maker makes the disks of a backend.
type Maker struct {
	Owner owner.Owner
	Spec  settings.Settings
}

// Draft is what a new disk is decided on.
type Draft struct {
	Request backend.Request
	From    Origin
	Class   diskclass.Class
	Zone    string
	// InZones are all zones in which the volume is to have a disk; none for a volume of one disk.
	InZones []string
}

// At is where the disk is made: in its zone or, with replicas, in that zone's region.
func (d Draft) At() place.Place {
	if d.Class.Replicated {
		return place.RegionOf(d.Zone)
	}
	return place.Zone(d.Zone)
}

// Origin is what a new disk begins as a copy of. Its zero value is nothing.
type Origin struct {
	// Snapshot is the path of a snapshot, and Image that of an image.
	Snapshot, Image string
	// Disk is a disk, of which a copy has a zone and the type.
	Disk *cloud.Disk
}
