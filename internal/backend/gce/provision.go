package gce

import (
	"cmp"
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/size"
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
	own, err := b.owner.PickDisk(found)
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
	class, err := b.classOf(request, from)
	if err != nil {
		return nil, err
	}
	zone, err := b.zones(class).For(request, from.disk)
	if errors.Is(err, backend.WrongNode) {
		return nil, cmp.Or(c.CheckNoInsertNear(ctx, request.ID, request.Node.Labels[corev1.LabelTopologyZone]), err)
	}
	if err != nil {
		return nil, err
	}
	plan := draft{request: request, from: from, class: class, zone: zone}
	disk, err := b.newDisk(ctx, c, plan)
	if err != nil {
		return nil, err
	}
	if err := c.InsertDisk(ctx, plan.at(), disk); err != nil {
		return nil, b.whyNotMade(ctx, c, plan, disk, err)
	}
	made, err := c.Disk(ctx, plan.at(), request.ID)
	switch {
	case err != nil:
		return nil, err
	case made == nil:
		// A pod may have written it already: never an empty disk instead.
		return nil, backend.Invalid.Errorf("disk %s was made in %s and was deleted since, not by Stowage: create the claim again", request.ID, plan.at())
	}
	return b.resume(made, request)
}

// resume returns the volume of a disk that was begun for a request, once the disk is ready.
func (b *gceBackend) resume(found *cloud.Disk, request backend.Request) (*backend.Volume, error) {
	read, err := b.owner.CheckDisk(found)
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
		made.FSType = cmp.Or(request.FSType, b.spec.FSType)
	}
	return made
}
