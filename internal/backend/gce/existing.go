package gce

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
)

// existingID is the path of a zone's disk.
var existingID = regexp.MustCompile(`^projects/([a-z0-9.:-]+)/zones/([a-z][a-z0-9-]{0,62})/disks/([a-z]([a-z0-9-]{0,61}[a-z0-9])?)$`)

// existingDisks attaches and detaches disks that somebody else made. It has no other
// method, so that nothing else can be asked for one of them.
type existingDisks struct{ backend *gceBackend }

var (
	_ backend.ExistingAttacher = (*gceBackend)(nil)
	_ backend.Attacher         = existingDisks{}
)

// Existing attaches disks that somebody else made.
func (b *gceBackend) Existing() backend.Attacher { return existingDisks{b} }

// Attach attaches a disk to the node's instance, under a device name that nobody else
// gives.
func (e existingDisks) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	doing := fmt.Sprintf("attaching %s to node %s", request.ID, request.Node.Name)
	return inCloud(ctx, e.backend, doing, func(c *cloud) (backend.Attachment, error) {
		if !e.backend.spec.existing {
			return backend.Attachment{}, backend.Invalid.Errorf("backend %s isn't for disks that it didn't make: set gce.existingDisks to have %s attached",
				e.backend.name, request.ID)
		}
		return e.attach(ctx, c, request)
	})
}

func (e existingDisks) attach(ctx context.Context, c *cloud, request backend.AttachRequest) (backend.Attachment, error) {
	wanted, err := e.placeOf(request.ID)
	if err != nil {
		return backend.Attachment{}, err
	}
	at, err := e.backend.instanceOf(request.Node)
	if err != nil {
		return backend.Attachment{}, err
	}
	if !slices.Contains(c.zones, wanted.zone) || at.zone != wanted.zone {
		return backend.Attachment{}, backend.WrongNode.Errorf("disk %s can be attached to instances of its zone, where that is one of gce.zones of backend %s; "+
			"node %s is in zone %s", request.ID, e.backend.name, request.Node.Name, at.zone)
	}
	found, err := e.diskAt(ctx, c, wanted)
	if err != nil {
		return backend.Attachment{}, err
	}
	as := manner{device: deviceOfExisting(request.ID), mode: modeOf(request)}
	if err := c.ensureAttached(ctx, found, request.Node, at, as); err != nil {
		return backend.Attachment{}, err
	}
	return attachmentOf(as, at), nil
}

// diskAt finds a disk that can be attached, and that is none of Stowage's: those have
// volumes of their own, by which it is known who uses them.
func (e existingDisks) diskAt(ctx context.Context, c *cloud, wanted place) (*disk, error) {
	found, err := c.disk(ctx, wanted.zone, wanted.name)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, backend.NotFound.Errorf("zone %s of project %s has no disk %s: correct pdName, or the zone, of the volume", wanted.zone, wanted.project, wanted.name)
	}
	if read, ours := recordOf(found.Disk); ours {
		return nil, backend.Conflict.Errorf("disk %s belongs to volume %s of Stowage backend %s: use that volume, this one is left alone", found.path(), read.ID, read.Backend)
	}
	if err := found.checkReady(); err != nil {
		return nil, err
	}
	return found, nil
}

// Detach takes a disk from the node's instance if it was attached by Attach. The device
// name tells: it is made of the disk's path, and no other program gives it.
func (e existingDisks) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	if !existingID.MatchString(id) {
		return nil // Attach has attached nothing for it
	}
	_, err := inCloud(ctx, e.backend, fmt.Sprintf("detaching %s from node %s", id, node.Name), func(c *cloud) (any, error) {
		return nil, e.detach(ctx, c, id, node)
	})
	return err
}

func (e existingDisks) detach(ctx context.Context, c *cloud, id string, node backend.NodeIdentity) error {
	wanted, err := e.placeOf(id)
	if err != nil {
		return err
	}
	candidates, err := c.instancesOf(ctx, node)
	if err != nil {
		return err
	}
	for _, from := range candidates {
		if from.project != wanted.project || from.zone != wanted.zone {
			continue // a disk is attached within its zone
		}
		if err := e.detachFrom(ctx, c, wanted, from); err != nil {
			return err
		}
	}
	return nil
}

func (e existingDisks) detachFrom(ctx context.Context, c *cloud, wanted place, from *instance) error {
	path := c.diskPath(wanted.zone, wanted.name)
	from, has, err := c.settledDisk(ctx, from, path)
	if err != nil || has == nil {
		return err
	}
	if has.DeviceName != deviceOfExisting(path) || has.Boot || has.AutoDelete {
		return nil // somebody else attached it
	}
	found, err := c.disk(ctx, wanted.zone, wanted.name)
	switch {
	case err != nil:
		return err
	case found == nil:
		return notShown(path, from)
	}
	return c.detachDisk(ctx, found, from, has.DeviceName)
}

// IsAttached looks for a disk that was attached by Attach at the node's instance.
func (e existingDisks) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	if !existingID.MatchString(id) {
		return false, nil
	}
	return inCloud(ctx, e.backend, fmt.Sprintf("looking for %s at node %s", id, node.Name), func(c *cloud) (bool, error) {
		wanted, err := e.placeOf(id)
		if err != nil {
			return false, err
		}
		find := func(*instance) string { return c.diskPath(wanted.zone, wanted.name) }
		has, err := c.attachedTo(ctx, node, find)
		if err != nil || node.ProviderID != "" || has != nil {
			return has != nil && has.DeviceName == deviceOfExisting(id), err
		}
		return c.isUsed(ctx, wanted.zone, wanted.name)
	})
}

// placeOf reads the path of a disk, which is one of the backend's project.
func (e existingDisks) placeOf(id string) (place, error) {
	parts := existingID.FindStringSubmatch(id)
	switch {
	case parts == nil:
		return place{}, backend.Invalid.Errorf("%q is no path of a disk in a zone", id)
	case parts[1] != e.backend.spec.project:
		return place{}, backend.Conflict.Errorf("disk %s isn't of project %s, which backend %s is for: it is left alone", id, e.backend.spec.project, e.backend.name)
	}
	return place{parts[1], parts[2], parts[3]}, nil
}

// deviceOfExisting is the device name, and so the serial, under which a disk of others is
// attached: it proves to the node which disk it has, and to Detach who attached it.
func deviceOfExisting(path string) string { return "stowage-" + hexDigest("existing", path)[:24] }
