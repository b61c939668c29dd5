package newdisk

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

// Describe returns the disk of a draft. All of it is in the id of the request that makes the disk.
func (m Maker) Describe(ctx context.Context, c *cloud.Client, plan Draft) (*compute.Disk, error) {
	request, from, class := plan.Request, plan.From, plan.Class
	replicas, err := m.replicasOf(plan)
	if err != nil {
		return nil, err
	}
	accessMode, err := accessmode.Of(class.Type, request.AccessModes)
	// The type of a class never changes: no call of the claim got further. That of the backend may have been another.
	if err != nil && (!request.Unwanted || request.Parameters[string(stowagev1alpha1.GCETypeParameter)] != "") {
		return nil, err
	}
	can, err := c.DiskType(ctx, plan.At(), class.Type)
	if err != nil {
		return nil, err
	}
	sizeGb, err := can.AtLeast(request.Capacity)
	if err != nil {
		return nil, err
	}
	description, err := m.Owner.DescribeDisk(request.ID, request.Claim, plan.InZones...)
	if err != nil {
		return nil, err
	}
	wanted := &compute.Disk{
		Name: request.ID, Description: description, Labels: m.Owner.Label(m.Spec.Disks.Labels, class.Labels),
		SizeGb: sizeGb, SourceSnapshot: from.Snapshot, SourceImage: from.Image, ProvisionedIops: class.IOPS, ProvisionedThroughput: class.Throughput,
		AccessMode: accessMode, StoragePool: class.Pools[plan.Zone].Path(), ReplicaZones: replicas,
		Type: plan.At().Path(c.Project) + "/diskTypes/" + class.Type,
	}
	diskclass.SetKey(wanted, class.Key)
	tags.Set(wanted, class.Tags)
	if from.Disk != nil {
		wanted.SourceDisk, wanted.SizeGb = from.Disk.Path(), max(sizeGb, from.Disk.SizeGb)
	}
	return wanted, nil
}

// replicasOf are the zones of a disk that is replicated; none for another.
func (m Maker) replicasOf(plan Draft) (paths []string, err error) {
	switch {
	case !plan.Class.Replicated:
		return nil, nil
	case plan.Class.Pools != nil:
		return nil, backend.Invalid.Errorf("a disk in a storage pool is in one zone, and this one is to be replicated: use a class with one of the parameters %s and %s",
			stowagev1alpha1.GCEPoolsParameter, stowagev1alpha1.GCEReplicationParameter)
	}
	pair, err := m.Zones(plan.Class).Pair(plan.Request, plan.Zone, plan.From.Disk)
	for _, zone := range pair {
		paths = append(paths, place.Zone(zone).Path(m.Spec.Project))
	}
	return paths, err
}

// Zones are those in which disks of a class are made.
func (m Maker) Zones(class diskclass.Class) zones.Zones {
	return zones.Zones{Backend: m.Owner.Backend, Names: m.Spec.Zones, Pools: class.Pools}
}

// ClassOf is what a new disk is to have. The claim's VolumeAttributesClass comes before its StorageClass, and that before the
// backend's spec. A copy has the type and the key of its source.
func (m Maker) ClassOf(request backend.Request, from Origin) (wanted diskclass.Class, err error) {
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
	if from.Disk != nil {
		class, err = class.OfCopy(from.Disk.Disk, m.Spec.Disks.Key)
	}
	// A call that is undone is repeated whatever the backend demands now: an earlier one may be under way.
	if err != nil && !request.Unwanted {
		return wanted, err
	}
	wanted = wanted.Or(class).Or(m.Spec.Disks.For(class.Type))
	wanted.Labels[labels.Claim] = labels.ValueOf(string(request.Claim.UID))
	return wanted, nil
}
