package gce

import (
	"cmp"
	"context"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/accessmode"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/volume"
)

// attach attaches the disk under its own name, unless it is attached.
func (b *gceBackend) attach(ctx context.Context, c *cloud.Client, request backend.AttachRequest) (backend.Attachment, error) {
	at, err := b.instanceOf(request.Node)
	if err != nil {
		return backend.Attachment{}, err
	}
	found, err := b.diskFor(ctx, c, request, at)
	if err != nil {
		return backend.Attachment{}, err
	}
	as, err := attachOptions(found, request, found.Name)
	if err != nil {
		return backend.Attachment{}, err
	}
	if err := c.EnsureAttached(ctx, found, request.Node, at, as); err != nil {
		return backend.Attachment{}, err
	}
	return attachmentOf(as, at), nil
}

// attachOptions are those of a disk that a request may have, as a device.
func attachOptions(found *cloud.Disk, request backend.AttachRequest, device string) (cloud.AttachOptions, error) {
	return cloud.AttachOptions{Device: device, Mode: modeOf(request), Shared: accessmode.IsShared(request.Volume)}, checkUse(found, request)
}

// checkUse returns an error of kind Invalid where a volume object lets several nodes have a disk that would let them write it,
// file system or not: then no other check would keep two from writing.
func checkUse(found *cloud.Disk, request backend.AttachRequest) error {
	pv := request.Volume
	if pv == nil || !found.IsWrittenByMany() || !volume.AllowsMultiAttach(pv.Spec.AccessModes) || accessmode.IsShared(pv) {
		return nil
	}
	return backend.Invalid.Errorf("disk %s can be written by several machines, and PersistentVolume %s has access modes for several nodes (%v), but isn't "+
		"a device of access mode ReadWriteMany: correct its volumeMode or its accessModes", found.Path(), pv.Name, pv.Spec.AccessModes)
}

func modeOf(request backend.AttachRequest) string {
	if request.ReadOnly {
		return cloud.ReadOnly
	}
	return cloud.ReadWrite
}

func attachmentOf(as cloud.AttachOptions, at cloud.InstanceRef) backend.Attachment {
	return backend.Attachment{Metadata: map[string]string{
		// Google gives a disk its device's name as serial.
		backend.DeviceMetadata: as.Device, backend.SerialMetadata: as.Device, backend.InstanceMetadata: at.ProviderID(),
	}}
}

// instanceOf is the instance of a node. A node without a provider's id gets no disk: another
// machine may have its name.
func (b *gceBackend) instanceOf(node backend.NodeIdentity) (cloud.InstanceRef, error) {
	at, readable := cloud.ParseProviderID(node.ProviderID)
	switch {
	case !readable:
		return cloud.InstanceRef{}, backend.WrongNode.Errorf("node %s has no instance at Google: its spec.providerID is %q, not gce://PROJECT/ZONE/NAME; "+
			"place the pod on a node that has one", node.Name, node.ProviderID)
	case at.Project != b.spec.Project:
		return cloud.InstanceRef{}, backend.WrongNode.Errorf("node %s is an instance of project %s, and backend %s has its disks in project %s: place the pod elsewhere",
			node.Name, at.Project, b.owner.Backend, b.spec.Project)
	}
	return at, nil
}

// diskFor finds the disk that the instance can have. A disk of other zones is an error that names it.
func (b *gceBackend) diskFor(ctx context.Context, c *cloud.Client, request backend.AttachRequest, at cloud.InstanceRef) (*cloud.Disk, error) {
	if !owner.ValidID.MatchString(request.ID) {
		return nil, backend.Conflict.Errorf("%q is no id of a volume: nothing is attached for it", request.ID)
	}
	found, err := b.attachable(ctx, c, at.Zone, request.ID)
	if err != nil {
		return nil, err
	}
	if found == nil {
		elsewhere, err := b.owner.FindDisk(ctx, c, request.ID)
		switch {
		case err != nil:
			return nil, err
		case elsewhere == nil:
			return nil, c.NoDisk(request.ID)
		}
		return nil, backend.WrongNode.Errorf("disk %s is in %s, and node %s in zone %s: place the pod where the disk is",
			elsewhere.Path(), elsewhere.In(), request.Node.Name, at.Zone)
	}
	if err := found.CheckReady(); err != nil {
		return nil, err
	}
	return found, nil
}

// attachable finds the disk of a volume that instances of a zone can have, in the zone or in its region. Without one it
// returns why the first disk of that name isn't this backend's.
func (b *gceBackend) attachable(ctx context.Context, c *cloud.Client, zone, id string) (*cloud.Disk, error) {
	var foreign error
	for _, at := range []place.Place{place.Zone(zone), place.RegionOf(zone)} {
		found, err := c.Disk(ctx, at, id)
		switch {
		case err != nil:
			return nil, err
		case found == nil || !slices.Contains(found.Zones(), zone):
			continue
		}
		_, err = b.owner.CheckDisk(found)
		if err == nil {
			return found, nil
		}
		foreign = cmp.Or(foreign, err)
	}
	return nil, foreign
}

// isAttached looks for the volume's disk at a node's instance, by the disk's path: replaced labels
// would hide it from lists. If the instance is unknown, a disk that any instance has may be the
// node's.
func (b *gceBackend) isAttached(ctx context.Context, c *cloud.Client, id string, node backend.NodeIdentity) (bool, error) {
	has, err := c.AttachedTo(ctx, node, func(on *cloud.Instance) []string { return c.DiskPaths(on.At.Zone, id) })
	if err != nil || has != nil || node.ProviderID != "" {
		return has != nil, err
	}
	found, err := c.DisksNamed(ctx, id)
	for _, one := range found {
		if _, foreign := b.owner.CheckDisk(one); foreign != nil {
			continue
		}
		used, err := c.IsUsed(ctx, one.At(), id, one.Zones()...)
		if used || err != nil {
			return used, err
		}
	}
	return false, err
}

// detach takes the disk from the node's instance, whatever the guest does with it. One that its zone's failure keeps there may
// count as detached.
func (b *gceBackend) detach(ctx context.Context, c *cloud.Client, id string, node backend.NodeIdentity) error {
	err := b.detachFromAll(ctx, c, id, node)
	if err != nil && b.isLeftBehind(ctx, c, id, node) {
		return nil
	}
	return err
}

// isLeftBehind reports whether a disk is a replicated one, and the zone of the node's instance is down. Then neither can be
// changed there, nor perhaps read, and EnsureAttached takes the disk from there. A disk that several write is never taken.
func (b *gceBackend) isLeftBehind(ctx context.Context, c *cloud.Client, id string, node backend.NodeIdentity) bool {
	at, err := b.instanceOf(node)
	if err != nil || !isDown(ctx, c, at.Zone) {
		return false
	}
	found, err := c.Disk(ctx, place.RegionOf(at.Zone), id)
	if found == nil || err != nil || found.IsWrittenByMany() {
		return false
	}
	_, err = b.owner.CheckDisk(found)
	return err == nil
}

// isDown reports whether the cloud says that a zone is down.
func isDown(ctx context.Context, c *cloud.Client, zone string) bool {
	down, err := c.IsDown(ctx, zone)
	return down && err == nil
}

func (b *gceBackend) detachFromAll(ctx context.Context, c *cloud.Client, id string, node backend.NodeIdentity) error {
	candidates, err := c.InstancesOf(ctx, node)
	if err != nil {
		return err
	}
	for _, from := range candidates {
		if from.At.Project != c.Project {
			continue // a disk is attached within its project
		}
		if err := b.detachFrom(ctx, c, id, from); err != nil {
			return err
		}
	}
	return nil
}

// detachFrom detaches the disk from an instance. An operation that attaches a disk shows on the
// instance only at its end.
func (b *gceBackend) detachFrom(ctx context.Context, c *cloud.Client, id string, from *cloud.Instance) error {
	from, has, err := c.SettledDisk(ctx, from, c.DiskPaths(from.At.Zone, id)...)
	if err != nil || has == nil {
		return err
	}
	path := cloud.PathOf(has.Source)
	found, err := c.Disk(ctx, place.OfPath(path), id)
	switch {
	case err != nil:
		return err
	case found == nil:
		return cloud.DiskNotListed(path, from)
	}
	if _, err := b.owner.CheckDisk(found); err != nil {
		return err
	}
	return c.DetachDisk(ctx, found, from, has.DeviceName)
}
