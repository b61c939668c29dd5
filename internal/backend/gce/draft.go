package gce

import (
	"context"

	"google.golang.org/api/compute/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/accessmode"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/diskclass"
	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
	"github.com/stowage-dev/stowage/internal/backend/gce/performance"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/tags"
	"github.com/stowage-dev/stowage/internal/backend/gce/zones"
)

// draft is what a new disk is decided on.
type draft struct {
	request backend.Request
	from    origin
	class   diskclass.Class
	zone    string
}

// at is where the disk is made: in its zone or, with replicas, in that zone's region.
func (d draft) at() place.Place {
	if d.class.Replicated {
		return place.RegionOf(d.zone)
	}
	return place.Zone(d.zone)
}

// newDisk is the disk of a draft. All of it is in the id of the request that makes the disk.
func (b *gceBackend) newDisk(ctx context.Context, c *cloud.Client, plan draft) (*compute.Disk, error) {
	request, from, class := plan.request, plan.from, plan.class
	replicas, err := b.replicasOf(plan)
	if err != nil {
		return nil, err
	}
	accessMode, err := accessmode.Of(class.Type, request.AccessModes)
	// The type of a class never changes: no call of the claim got further. That of the backend may have been another.
	if err != nil && (!request.Unwanted || request.Parameters[string(stowagev1alpha1.GCETypeParameter)] != "") {
		return nil, err
	}
	can, err := c.DiskType(ctx, plan.at(), class.Type)
	if err != nil {
		return nil, err
	}
	sizeGb, err := can.AtLeast(request.Capacity)
	if err != nil {
		return nil, err
	}
	description, err := b.owner.DescribeDisk(request.ID, request.Claim)
	if err != nil {
		return nil, err
	}
	wanted := &compute.Disk{
		Name: request.ID, Description: description, Labels: b.owner.Label(b.spec.Disks.Labels, class.Labels),
		SizeGb: sizeGb, SourceSnapshot: from.snapshot, ProvisionedIops: class.IOPS, ProvisionedThroughput: class.Throughput,
		AccessMode: accessMode, StoragePool: class.Pools[plan.zone].Path(), ReplicaZones: replicas,
		Type: plan.at().Path(c.Project) + "/diskTypes/" + class.Type,
	}
	diskclass.SetKey(wanted, class.Key)
	tags.Set(wanted, class.Tags)
	if from.disk != nil {
		wanted.SourceDisk, wanted.SizeGb = from.disk.Path(), max(sizeGb, from.disk.SizeGb)
	}
	return wanted, nil
}

// replicasOf are the zones of a disk that is replicated; none for another.
func (b *gceBackend) replicasOf(plan draft) (paths []string, err error) {
	switch {
	case !plan.class.Replicated:
		return nil, nil
	case plan.class.Pools != nil:
		return nil, backend.Invalid.Errorf("a disk in a storage pool is in one zone, and this one is to be replicated: use a class with one of the parameters %s and %s",
			stowagev1alpha1.GCEPoolsParameter, stowagev1alpha1.GCEReplicationParameter)
	}
	pair, err := b.zones(plan.class).Pair(plan.request, plan.zone, plan.from.disk)
	for _, zone := range pair {
		paths = append(paths, place.Zone(zone).Path(b.spec.Project))
	}
	return paths, err
}

func (b *gceBackend) zones(class diskclass.Class) zones.Zones {
	return zones.Zones{Backend: b.owner.Backend, Names: b.spec.Zones, Pools: class.Pools}
}

// classOf is what a new disk is to have. The claim's VolumeAttributesClass comes before its StorageClass, and that before the
// backend's spec. A copy has the type and the key of its source.
func (b *gceBackend) classOf(request backend.Request, from origin) (wanted diskclass.Class, err error) {
	if request.Attributes != nil {
		wanted.Performance, err = performance.Of(*request.Attributes)
	}
	if err != nil {
		return wanted, err
	}
	class, err := diskclass.Of(request.Parameters)
	if err != nil {
		return wanted, err
	}
	if from.disk != nil {
		class, err = class.OfCopy(from.disk.Disk, b.spec.Disks.Key)
	}
	// A call that is undone is repeated whatever the backend demands now: an earlier one may be under way.
	if err != nil && !request.Unwanted {
		return wanted, err
	}
	wanted = wanted.Or(class).Or(b.spec.Disks.For(class.Type))
	wanted.Labels[labels.Claim] = labels.ValueOf(string(request.Claim.UID))
	return wanted, nil
}
