package gce

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
)

// attach finds the disk attached, or attaches it under its own name.
func (b *gceBackend) attach(ctx context.Context, c *cloud, request backend.AttachRequest) (backend.Attachment, error) {
	at, err := b.instanceOf(request.Node)
	if err != nil {
		return backend.Attachment{}, err
	}
	found, err := b.diskFor(ctx, c, request, at)
	if err != nil {
		return backend.Attachment{}, err
	}
	as := manner{device: found.Name, mode: modeOf(request)}
	if err := c.ensureAttached(ctx, found, request.Node, at, as); err != nil {
		return backend.Attachment{}, err
	}
	return attachmentOf(as, at), nil
}

func modeOf(request backend.AttachRequest) string {
	if request.ReadOnly {
		return readOnly
	}
	return readWrite
}

func attachmentOf(as manner, at place) backend.Attachment {
	return backend.Attachment{Metadata: map[string]string{
		// Google gives a disk its device's name as serial.
		backend.DeviceMetadata: as.device, backend.SerialMetadata: as.device, backend.InstanceMetadata: at.providerID(),
	}}
}

// instanceOf is where a node's instance is. A node that isn't known to have one gets no
// disk: another machine may have its name.
func (b *gceBackend) instanceOf(node backend.NodeIdentity) (place, error) {
	at, readable := placeOf(node.ProviderID)
	switch {
	case !readable:
		return place{}, backend.WrongNode.Errorf("node %s has no instance at Google: its spec.providerID is %q, not gce://PROJECT/ZONE/NAME; "+
			"place the pod on a node that has one", node.Name, node.ProviderID)
	case at.project != b.spec.project:
		return place{}, backend.WrongNode.Errorf("node %s is an instance of project %s, and backend %s has its disks in project %s: place the pod elsewhere",
			node.Name, at.project, b.name, b.spec.project)
	}
	return at, nil
}

// diskFor finds the disk where the instance is, and tells where it is if it isn't there.
func (b *gceBackend) diskFor(ctx context.Context, c *cloud, request backend.AttachRequest, at place) (*disk, error) {
	if !validID.MatchString(request.ID) {
		return nil, backend.Conflict.Errorf("%q is no id of a volume: nothing is attached for it", request.ID)
	}
	found, err := c.disk(ctx, at.zone, request.ID)
	if err != nil {
		return nil, err
	}
	if found == nil {
		elsewhere, err := b.ownDisk(ctx, c, request.ID)
		switch {
		case err != nil:
			return nil, err
		case elsewhere == nil:
			return nil, c.notThere(request.ID)
		}
		return nil, backend.WrongNode.Errorf("disk %s is in zone %s, and node %s in zone %s: place the pod in the disk's zone",
			elsewhere.path(), elsewhere.zone(), request.Node.Name, at.zone)
	}
	if _, err := b.checkOwner(found); err != nil {
		return nil, err
	}
	if err := found.checkReady(); err != nil {
		return nil, err
	}
	return found, nil
}

// isAttached looks for the volume's disk at a node's instance, by the disk's path: labels
// that somebody replaced hide it from lists. Where nobody knows the instance, a disk that
// any instance has may be the node's.
func (b *gceBackend) isAttached(ctx context.Context, c *cloud, id string, node backend.NodeIdentity) (bool, error) {
	has, err := c.attachedTo(ctx, node, func(on *instance) string { return c.diskPath(on.at.zone, id) })
	if err != nil || has != nil || node.ProviderID != "" {
		return has != nil, err
	}
	found, err := c.disksNamed(ctx, id)
	for _, one := range found {
		if _, foreign := b.checkOwner(one); foreign != nil {
			continue
		}
		used, err := c.isUsed(ctx, one.zone(), id)
		if used || err != nil {
			return used, err
		}
	}
	return false, err
}
