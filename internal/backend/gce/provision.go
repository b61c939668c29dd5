package gce

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/diskclass"
	"github.com/stowage-dev/stowage/internal/backend/gce/newdisk"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
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
	if class, invalid := diskclass.Of(request.Parameters); invalid == nil && class.InEachZone {
		return b.provisionInEach(ctx, c, request)
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
	return request.CheckClaim(owner.ValidID)
}

// insert makes the disk. A second call, also of another process, takes part in the first.
func (b *gceBackend) insert(ctx context.Context, c *cloud.Client, request backend.Request) (*backend.Volume, error) {
	from, err := b.maker().OriginOf(ctx, c, request)
	if err != nil {
		return nil, err
	}
	class, err := b.maker().ClassOf(request, from)
	if err != nil {
		return nil, err
	}
	zone, err := b.maker().Zones(class).For(request, from.Disk)
	if errors.Is(err, backend.WrongNode) {
		return nil, cmp.Or(c.CheckNoInsertNear(ctx, request.ID, request.Node.Labels[corev1.LabelTopologyZone]), err)
	}
	if err != nil {
		return nil, err
	}
	made, err := b.maker().Make(ctx, c, newdisk.Draft{Request: request, From: from, Class: class, Zone: zone})
	if err != nil {
		return nil, err
	}
	return b.resume(made, request)
}

// resume returns the volume of a disk that was begun for a request, once the disk is ready.
func (b *gceBackend) resume(found *cloud.Disk, request backend.Request) (*backend.Volume, error) {
	if err := b.checkMade(found, request); err != nil {
		return nil, err
	}
	made, err := b.volume(request, found)
	if err == nil {
		made.Attributes = map[string]string{stowagev1alpha1.DiskAttribute: found.Path()}
	}
	return made, err
}

// checkMade returns an error where a disk isn't what was made for a request, or isn't ready.
func (b *gceBackend) checkMade(found *cloud.Disk, request backend.Request) error {
	read, err := b.owner.CheckDisk(found)
	switch {
	case err != nil:
		return err
	case read.Claim != request.Claim:
		return backend.Conflict.Errorf("disk %s belongs to claim %s/%s, uid %s", found.Path(), read.Claim.Namespace, read.Claim.Name, read.Claim.UID)
	case found.Status == cloud.DiskDeleting:
		return backend.Conflict.Errorf("disk %s is being deleted: it isn't made again", found.Path())
	case found.Status == cloud.DiskFailed:
		// Final: an undo goes on to delete it.
		return backend.Invalid.Errorf("making disk %s failed: delete the claim, which deletes what there is of it", found.Path())
	case found.Status != cloud.DiskReady:
		return backend.InProgress.Errorf("disk %s is %s: waiting for it to be READY", found.Path(), found.Status)
	case found.SizeGb < size.InGib(request.Capacity):
		capacity := found.Capacity()
		return backend.Conflict.Errorf("disk %s has %s, less than the %s asked for: it is not what was made for this claim", found.Path(), capacity.String(), request.Capacity.String())
	}
	return newdisk.CheckOrigin(found, request.Source)
}

// volume is the volume that a disk is, or several are with the same content.
func (b *gceBackend) volume(request backend.Request, found ...*cloud.Disk) (*backend.Volume, error) {
	var zones []string
	smallest := found[0]
	for _, one := range found {
		zones = append(zones, one.Zones()...)
		if one.SizeGb < smallest.SizeGb {
			smallest = one
		}
	}
	if request.Node != nil && !slices.Contains(zones, request.Node.Labels[corev1.LabelTopologyZone]) {
		return nil, backend.WrongNode.Errorf("disk %s was made in zone %s, and node %s isn't there", request.ID, strings.Join(zones, " and "), request.Node.Name)
	}
	made := &backend.Volume{
		Handle:       request.ID,
		Capacity:     smallest.Capacity(),
		NodeAffinity: backend.AffinityToLabel(corev1.LabelTopologyZone, zones...),
	}
	if request.VolumeMode != corev1.PersistentVolumeBlock {
		// The node formats a disk that is empty.
		made.FSType = cmp.Or(request.FSType, b.spec.FSType)
	}
	return made, nil
}
