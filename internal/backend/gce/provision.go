package gce

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/diskclass"
	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
	"github.com/stowage-dev/stowage/internal/backend/gce/performance"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/size"
	"github.com/stowage-dev/stowage/internal/backend/gce/zones"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Provision finds the volume's disk, or makes it.
func (b *gceBackend) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	return inCloud(ctx, b, "provisioning volume "+request.ID, func(c *cloud.Client) (*backend.Volume, error) {
		return b.provision(ctx, c, request)
	})
}

// provision looks for the disk first, in all zones: a disk of an earlier call stays where it is,
// whatever zones the backend has now.
func (b *gceBackend) provision(ctx context.Context, c *cloud.Client, request backend.Request) (*backend.Volume, error) {
	if err := checkRequest(request); err != nil {
		return nil, err
	}
	found, err := c.DisksNamed(ctx, request.ID)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return b.insert(ctx, c, request)
	}
	own, err := b.pickOwn(found)
	if err != nil {
		return nil, err
	}
	return b.resume(own, request)
}

func checkRequest(request backend.Request) error {
	if volume.OnlyReaders(request.AccessModes) && request.Source == nil {
		return backend.Invalid.Errorf("a new disk is empty, and as ReadOnlyMany alone it could never be written: " +
			"ask for ReadWriteOnce as well, write it, and mount it read-only then")
	}
	return request.CheckClaim(validID)
}

// insert makes the disk. A second call, also of another process, takes part in the first.
func (b *gceBackend) insert(ctx context.Context, c *cloud.Client, request backend.Request) (*backend.Volume, error) {
	from, err := b.originOf(ctx, c, request)
	if err != nil {
		return nil, err
	}
	zone, err := b.zones().For(request, from.disk)
	if errors.Is(err, backend.WrongNode) {
		return nil, cmp.Or(c.CheckNoInsertNear(ctx, request.ID, request.Node.Labels[corev1.LabelTopologyZone]), err)
	}
	if err != nil {
		return nil, err
	}
	disk, err := b.newDisk(ctx, c, zone, from, request)
	if err != nil {
		return nil, err
	}
	at := place.Zone(zone)
	if len(disk.ReplicaZones) > 0 {
		at = place.RegionOf(zone)
	}
	err = c.InsertDisk(ctx, at, disk)
	switch reason := cloud.ReasonOf(err); {
	case reason == cloud.Exists:
		return nil, backend.InProgress.Errorf("disk %s exists by now: it is read again", request.ID)
	case request.Source != nil && (reason == cloud.NotFound || reason == cloud.Invalid):
		return nil, b.whyNotCopied(ctx, c, request, err)
	case reason == cloud.NotFound:
		return nil, backend.Invalid.Errorf("there is no %s, or no type %s in it: correct gce.zones, gce.diskType or the type of the StorageClass: %w", at, cloud.NameOf(disk.Type), err)
	}
	if err != nil {
		return nil, err
	}
	made, err := c.Disk(ctx, at, request.ID)
	switch {
	case err != nil:
		return nil, err
	case made == nil:
		// A pod may have written it already: never an empty disk instead.
		return nil, backend.Invalid.Errorf("disk %s was made in %s and was deleted since, not by Stowage: create the claim again", request.ID, at)
	}
	return b.resume(made, request)
}

// newDisk is the disk of a request.
func (b *gceBackend) newDisk(ctx context.Context, c *cloud.Client, zone string, from origin, request backend.Request) (*compute.Disk, error) {
	class, err := b.classOf(request, from)
	if err != nil {
		return nil, err
	}
	at, replicas, err := b.placeOf(class, zone, from, request)
	if err != nil {
		return nil, err
	}
	can, err := c.DiskType(ctx, at, class.Type)
	if err != nil {
		return nil, err
	}
	sizeGb, err := can.AtLeast(request.Capacity)
	if err != nil {
		return nil, err
	}
	description, err := json.Marshal(b.record(request.ID, request.Claim))
	if err != nil {
		return nil, fmt.Errorf("describing disk %s: %w", request.ID, err)
	}
	wanted := &compute.Disk{
		Name: request.ID, Description: string(description), Labels: b.labelled(class.Labels),
		SizeGb: sizeGb, SourceSnapshot: from.snapshot, ProvisionedIops: class.IOPS, ProvisionedThroughput: class.Throughput,
		Type: at.Path(c.Project) + "/diskTypes/" + class.Type, ReplicaZones: replicas,
	}
	diskclass.SetKey(wanted, class.Key)
	if from.disk != nil {
		wanted.SourceDisk, wanted.SizeGb = from.disk.Path(), max(sizeGb, from.disk.SizeGb)
	}
	return wanted, nil
}

// placeOf is where a new disk is made: in a zone or, with its replicas, in that zone's region.
func (b *gceBackend) placeOf(class diskclass.Class, zone string, from origin, request backend.Request) (at place.Place, replicas []string, err error) {
	if !class.Replicated {
		return place.Zone(zone), nil, nil
	}
	pair, err := b.zones().Pair(request, zone, from.disk)
	for _, one := range pair {
		replicas = append(replicas, place.Zone(one).Path(b.spec.Project))
	}
	return place.RegionOf(zone), replicas, err
}

func (b *gceBackend) zones() zones.Zones { return zones.Zones{Backend: b.name, Names: b.spec.Zones} }

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
		class, err = class.OfCopy(from.disk.Disk, b.spec.disks.Key)
	}
	// A call that is undone is repeated whatever the backend demands now: an earlier one may be under way.
	if err != nil && !request.Unwanted {
		return wanted, err
	}
	wanted = wanted.Or(class).Or(b.spec.disks.For(class.Type))
	wanted.Labels[labels.Claim] = labels.ValueOf(string(request.Claim.UID))
	if !request.Unwanted && isHyperdisk(wanted.Type) && slices.Contains(request.AccessModes, corev1.ReadOnlyMany) {
		return wanted, backend.Invalid.Errorf("a disk of type %s can't be ReadOnlyMany: ask for ReadWriteOnce, or use a class with another type", wanted.Type)
	}
	return wanted, nil
}

// resume returns the volume of a disk that was begun for a request, once the disk is ready.
func (b *gceBackend) resume(found *cloud.Disk, request backend.Request) (*backend.Volume, error) {
	read, err := b.checkOwner(found)
	switch {
	case err != nil:
		return nil, err
	case read.Claim != request.Claim:
		return nil, backend.Conflict.Errorf("disk %s belongs to claim %s/%s, uid %s", found.Path(), read.Claim.Namespace, read.Claim.Name, read.Claim.UID)
	case found.Status == cloud.DiskDeleting:
		return nil, backend.Conflict.Errorf("disk %s is being deleted: it isn't made again", found.Path())
	case found.Status == cloud.DiskFailed:
		return nil, backend.Unavailable.Errorf("making disk %s failed: delete the claim, which deletes what there is of it", found.Path())
	case found.Status != cloud.DiskReady:
		return nil, backend.InProgress.Errorf("disk %s is %s: waiting for it to be READY", found.Path(), found.Status)
	case found.SizeGb < size.InGib(request.Capacity):
		capacity := found.Capacity()
		return nil, backend.Conflict.Errorf("disk %s has %s, less than the %s asked for: it is not what was made for this claim", found.Path(), capacity.String(), request.Capacity.String())
	}
	if request.Node != nil && !slices.Contains(found.Zones(), request.Node.Labels[corev1.LabelTopologyZone]) {
		return nil, backend.WrongNode.Errorf("disk %s was made in %s, and node %s isn't there", found.Path(), found.In(), request.Node.Name)
	}
	if err := checkOrigin(found, request.Source); err != nil {
		return nil, err
	}
	return b.volume(found, request), nil
}

// volume is the volume that a disk is.
func (b *gceBackend) volume(found *cloud.Disk, request backend.Request) *backend.Volume {
	made := &backend.Volume{
		Handle:       found.Name,
		Attributes:   map[string]string{stowagev1alpha1.DiskAttribute: found.Path()},
		Capacity:     found.Capacity(),
		NodeAffinity: backend.AffinityToLabel(corev1.LabelTopologyZone, found.Zones()...),
	}
	if request.VolumeMode != corev1.PersistentVolumeBlock {
		// The node formats a disk that is empty.
		made.FSType = cmp.Or(request.FSType, b.spec.fsType)
	}
	return made
}
