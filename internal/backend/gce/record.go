package gce

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"

	"google.golang.org/api/compute/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
	"github.com/stowage-dev/stowage/internal/backend/gce/snapshotrecord"
)

// validID is what backend.VolumeID makes, as far as it is a name of a disk.
var validID = regexp.MustCompile(`^pvc-[a-z0-9-]{0,58}[a-z0-9]$`)

// record names a disk's owner. It is the disk's description, which can't be changed.
type record struct {
	CreatedBy string `json:"createdBy"`
	backend.Owner
}

func (b *gceBackend) record(id string, claim stowagev1alpha1.ClaimReference) record {
	return record{snapshotrecord.Creator, backend.Owner{ID: id, Cluster: b.cluster, Backend: b.name, Claim: claim}}
}

// recordOf reads a disk's description.
func recordOf(found *compute.Disk) (record, bool) {
	var read record
	err := json.Unmarshal([]byte(found.Description), &read)
	return read, err == nil && read.CreatedBy == snapshotrecord.Creator
}

// checkOwner returns an error of kind Conflict where a disk isn't a volume of this backend, or its
// record doesn't fit its name.
func (b *gceBackend) checkOwner(found *cloud.Disk) (record, error) {
	read, ours := recordOf(found.Disk)
	switch {
	case !ours:
		return read, backend.Conflict.Errorf("disk %s isn't Stowage's: its description names no owner; it is left alone", found.Path())
	case read.ID != found.Name:
		return read, backend.Conflict.Errorf("disk %s is described as volume %.200q, which doesn't fit: it is left alone", found.Path(), read.ID)
	}
	return read, read.CheckOwner("disk "+found.Path(), b.cluster, b.name)
}

// labelled adds to labels the backend's, and those by which Stowage finds what it made.
func (b *gceBackend) labelled(own map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, b.spec.disks.Labels)
	maps.Copy(all, own)
	all[labels.Cluster] = labels.ValueOf(b.cluster)
	all[labels.Backend] = labels.ValueOf(b.name)
	return all
}

// ownDisk finds this backend's disk for a volume: nil where there is none.
func (b *gceBackend) ownDisk(ctx context.Context, c *cloud.Client, id string) (*cloud.Disk, error) {
	if !validID.MatchString(id) {
		return nil, backend.Conflict.Errorf("%q is no id of a volume: nothing is done for it", id)
	}
	found, err := c.DisksNamed(ctx, id)
	if err != nil {
		return nil, err
	}
	return b.pickOwn(found)
}

// pickOwn picks this backend's disk. Without one it returns why the first disk is not.
func (b *gceBackend) pickOwn(found []*cloud.Disk) (*cloud.Disk, error) {
	var foreign error
	for _, one := range found {
		_, err := b.checkOwner(one)
		if err == nil {
			return one, nil
		}
		if foreign == nil {
			foreign = err
		}
	}
	return nil, foreign
}
