package owner

import (
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/api/compute/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// Disk names a disk's owner. It is the disk's description.
type Disk struct {
	CreatedBy string `json:"createdBy"`
	backend.Owner
	// Zones are those in which the volume was to have a disk of this name when this one was made; none for a volume of one disk.
	Zones []string `json:"zones,omitempty"`
}

// DescribeDisk returns the description of the disk of a volume, or of each of its disks.
func (o Owner) DescribeDisk(id string, claim stowagev1alpha1.ClaimReference, zones ...string) (string, error) {
	description, err := json.Marshal(Disk{creator, backend.Owner{ID: id, Cluster: o.Cluster, Backend: o.Backend, Claim: claim}, zones})
	if err != nil {
		return "", fmt.Errorf("describing disk %s: %w", id, err)
	}
	return string(description), nil
}

// OfDisk reads a disk's description. It reports whether the disk is Stowage's, of any cluster.
func OfDisk(found *compute.Disk) (Disk, bool) {
	var read Disk
	err := json.Unmarshal([]byte(found.Description), &read)
	return read, err == nil && read.CreatedBy == creator
}

// ZonesOf are the zones in which the volume of some disks may have others: those that they name, and those of the backend now.
// None for a volume of one disk.
func ZonesOf(found []*cloud.Disk, now []string) (zones []string) {
	for _, one := range found {
		if read, ours := OfDisk(one.Disk); ours && len(read.Zones) > 0 {
			zones = slices.Concat(zones, read.Zones, now)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// CheckAlone returns an error of kind Invalid where a disk is one of several of its volume: what is done to one of them would
// make it unlike the others.
func CheckAlone(found *cloud.Disk, doing string) error {
	if read, _ := OfDisk(found.Disk); len(read.Zones) == 0 {
		return nil
	}
	return backend.Invalid.Errorf("volume %s has disks in several zones, which pods can only read: it can't be %s", found.Name, doing)
}

// CheckDisk returns an error of kind Conflict where a disk isn't a volume of this owner, or its record doesn't fit its name.
func (o Owner) CheckDisk(found *cloud.Disk) (Disk, error) {
	read, ours := OfDisk(found.Disk)
	switch {
	case !ours:
		return read, backend.Conflict.Errorf("disk %s isn't Stowage's: its description names no owner; it is left alone", found.Path())
	case read.ID != found.Name:
		return read, backend.Conflict.Errorf("disk %s is described as volume %.200q, which doesn't fit: it is left alone", found.Path(), read.ID)
	}
	return read, read.CheckOwner("disk "+found.Path(), o.Cluster, o.Backend)
}

// ownDisks are those of some disks that are this owner's. It changes found.
func (o Owner) ownDisks(found []*cloud.Disk) []*cloud.Disk {
	return slices.DeleteFunc(found, func(one *cloud.Disk) bool {
		_, foreign := o.CheckDisk(one)
		return foreign != nil
	})
}

// PickDisk picks this owner's disk. Without one it returns why the first disk is not.
func (o Owner) PickDisk(found []*cloud.Disk) (*cloud.Disk, error) {
	var foreign error
	for _, one := range found {
		_, err := o.CheckDisk(one)
		if err == nil {
			return one, nil
		}
		if foreign == nil {
			foreign = err
		}
	}
	return nil, foreign
}
