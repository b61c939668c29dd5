package gce

import (
	"context"
	"regexp"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/digest"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
)

// existingID is the path of a zone's disk.
var existingID = regexp.MustCompile(`^projects/([a-z0-9.:-]+)/zones/([a-z][a-z0-9-]{0,62})/disks/([a-z]([a-z0-9-]{0,61}[a-z0-9])?)$`)

// attachExisting attaches a disk that Stowage didn't make to the node's instance, under a device
// name that no other program uses.
func (b *gceBackend) attachExisting(ctx context.Context, c *cloud.Client, request backend.AttachRequest) (backend.Attachment, error) {
	if !b.spec.Existing {
		return backend.Attachment{}, backend.Invalid.Errorf("backend %s isn't for disks that it didn't make: set gce.existingDisks to have %s attached",
			b.owner.Backend, request.ID)
	}
	ref, err := b.diskRefOf(request.ID)
	if err != nil {
		return backend.Attachment{}, err
	}
	at, err := b.instanceOf(request.Node)
	if err != nil {
		return backend.Attachment{}, err
	}
	if !slices.Contains(c.Zones, ref.Zone) || at.Zone != ref.Zone {
		return backend.Attachment{}, backend.WrongNode.Errorf("disk %s can be attached to instances of its zone, where that is one of gce.zones of backend %s; "+
			"node %s is in zone %s", request.ID, b.owner.Backend, request.Node.Name, at.Zone)
	}
	found, err := b.existingDisk(ctx, c, ref)
	if err != nil {
		return backend.Attachment{}, err
	}
	as, err := attachOptions(found, request, deviceOfExisting(request.ID))
	if err != nil {
		return backend.Attachment{}, err
	}
	if err := c.EnsureAttached(ctx, found, request.Node, at, as); err != nil {
		return backend.Attachment{}, err
	}
	return attachmentOf(as, at), nil
}

// existingDisk finds a disk that can be attached, and that isn't Stowage's: Stowage's disks have
// volumes of their own, which record their users.
func (b *gceBackend) existingDisk(ctx context.Context, c *cloud.Client, ref cloud.InstanceRef) (*cloud.Disk, error) {
	found, err := c.Disk(ctx, place.Zone(ref.Zone), ref.Name)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, backend.NotFound.Errorf("zone %s of project %s has no disk %s: correct pdName, or the zone, of the volume", ref.Zone, ref.Project, ref.Name)
	}
	if read, ours := owner.OfDisk(found.Disk); ours {
		return nil, backend.Conflict.Errorf("disk %s belongs to volume %s of Stowage backend %s: use that volume, this one is left alone", found.Path(), read.ID, read.Backend)
	}
	if err := found.CheckReady(); err != nil {
		return nil, err
	}
	return found, nil
}

// detachExisting detaches a disk from the node's instance if attachExisting attached it. The device
// name proves it: it is made of the disk's path, and no other program uses it.
func (b *gceBackend) detachExisting(ctx context.Context, c *cloud.Client, id string, node backend.NodeIdentity) error {
	ref, err := b.diskRefOf(id)
	if err != nil {
		return err
	}
	candidates, err := c.InstancesOf(ctx, node)
	if err != nil {
		return err
	}
	for _, from := range candidates {
		if from.At.Project != ref.Project || from.At.Zone != ref.Zone {
			continue // a disk is attached within its zone
		}
		if err := b.detachExistingFrom(ctx, c, ref, from); err != nil {
			return err
		}
	}
	return nil
}

func (b *gceBackend) detachExistingFrom(ctx context.Context, c *cloud.Client, ref cloud.InstanceRef, from *cloud.Instance) error {
	path := c.DiskPath(place.Zone(ref.Zone), ref.Name)
	from, has, err := c.SettledDisk(ctx, from, path)
	if err != nil || has == nil {
		return err
	}
	if has.DeviceName != deviceOfExisting(path) || has.Boot || has.AutoDelete {
		return nil // attached by another program
	}
	found, err := c.Disk(ctx, place.Zone(ref.Zone), ref.Name)
	switch {
	case err != nil:
		return err
	case found == nil:
		return cloud.DiskNotListed(path, from)
	}
	return c.DetachDisk(ctx, found, from, has.DeviceName)
}

// isExistingAttached reports whether the node's instance has a disk that attachExisting attached.
func (b *gceBackend) isExistingAttached(ctx context.Context, c *cloud.Client, id string, node backend.NodeIdentity) (bool, error) {
	ref, err := b.diskRefOf(id)
	if err != nil {
		return false, err
	}
	find := func(*cloud.Instance) []string { return []string{c.DiskPath(place.Zone(ref.Zone), ref.Name)} }
	has, err := c.AttachedTo(ctx, node, find)
	if err != nil || node.ProviderID != "" || has != nil {
		return has != nil && has.DeviceName == deviceOfExisting(id), err
	}
	return c.IsUsed(ctx, place.Zone(ref.Zone), ref.Name, ref.Zone)
}

// diskRefOf reads the path of a disk, which must be in the backend's project.
func (b *gceBackend) diskRefOf(id string) (cloud.InstanceRef, error) {
	parts := existingID.FindStringSubmatch(id)
	switch {
	case parts == nil:
		return cloud.InstanceRef{}, backend.Invalid.Errorf("%q is no path of a disk in a zone", id)
	case parts[1] != b.spec.Project:
		return cloud.InstanceRef{}, backend.Conflict.Errorf("disk %s isn't of project %s, which backend %s is for: it is left alone", id, b.spec.Project, b.owner.Backend)
	}
	return cloud.InstanceRef{Project: parts[1], Zone: parts[2], Name: parts[3]}, nil
}

// deviceOfExisting is the device name, and so the serial, of an attached disk that Stowage didn't
// make. It proves to the node which disk it has, and to Detach that Stowage attached it.
func deviceOfExisting(path string) string { return "stowage-" + digest.Hex("existing", path)[:24] }
