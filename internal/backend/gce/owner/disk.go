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
}

// DescribeDisk returns the description of the disk of a volume.
func (o Owner) DescribeDisk(id string, claim stowagev1alpha1.ClaimReference) (string, error) {
	description, err := json.Marshal(Disk{creator, backend.Owner{ID: id, Cluster: o.Cluster, Backend: o.Backend, Claim: claim}})
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

// OwnDisks are those of some disks that are this owner's. It changes found.
func (o Owner) OwnDisks(found []*cloud.Disk) []*cloud.Disk {
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
