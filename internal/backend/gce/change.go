package gce

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
	"github.com/stowage-dev/stowage/internal/backend/gce/performance"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
	"github.com/stowage-dev/stowage/internal/backend/gce/size"
)

// Expand makes the volume's disk larger; its node grows the file system.
func (b *gceBackend) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	return inCloud(ctx, b, "growing volume "+request.ID, func(c *cloud.Client) (backend.Expansion, error) {
		return b.expand(ctx, c, request.ID, request.Capacity)
	})
}

// expand resizes a disk that is smaller, attached or not.
func (b *gceBackend) expand(ctx context.Context, c *cloud.Client, id string, capacity resource.Quantity) (backend.Expansion, error) {
	found, err := b.owner.FindDisk(ctx, c, id)
	switch {
	case err != nil:
		return backend.Expansion{}, err
	case found == nil:
		return backend.Expansion{}, c.NoDisk(id)
	case found.Status == cloud.DiskDeleting:
		return backend.Expansion{}, backend.Conflict.Errorf("disk %s is being deleted: it doesn't grow", found.Path())
	case found.SizeGb >= size.InGib(capacity):
		return grown(found), nil
	}
	if err := owner.CheckAlone(found, "expanded"); err != nil {
		return backend.Expansion{}, err
	}
	if err := c.Resize(ctx, found, capacity); err != nil {
		return backend.Expansion{}, b.maker().WhyNotGrown(ctx, c, found, capacity, err)
	}
	now, err := c.Disk(ctx, found.At(), id)
	switch {
	case err != nil:
		return backend.Expansion{}, err
	case now == nil || now.Id != found.Id:
		return backend.Expansion{}, c.NoDisk(id)
	case now.SizeGb < size.InGib(capacity):
		return backend.Expansion{}, backend.InProgress.Errorf("waiting for disk %s to have %s", found.Path(), capacity.String())
	}
	return grown(now), nil
}

func grown(found *cloud.Disk) backend.Expansion {
	return backend.Expansion{Capacity: found.Capacity(), OnNode: true}
}

// Modify gives the volume's disk the performance that a VolumeAttributesClass names, attached or not.
func (b *gceBackend) Modify(ctx context.Context, id string, attributes backend.Attributes) error {
	wanted, err := performance.Of(attributes)
	if err != nil {
		return err
	}
	_, err = inCloud(ctx, b, "changing volume "+id, func(c *cloud.Client) (struct{}, error) {
		found, err := b.readDisk(ctx, c, id)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, b.aboutClass(attributes, c.Update(ctx, found, wanted.String(), wanted.Update))
	})
	return err
}

// readDisk reads the disk that is to change. A list may lag behind: the disk itself is read.
func (b *gceBackend) readDisk(ctx context.Context, c *cloud.Client, id string) (*cloud.Disk, error) {
	found, err := b.owner.FindDisk(ctx, c, id)
	if err == nil && found != nil {
		listed := found.Id
		found, err = c.Disk(ctx, found.At(), id)
		if found != nil && found.Id != listed {
			found = nil
		}
	}
	switch {
	case reason.Of(err) == reason.Invalid:
		// Of an earlier change it says nothing.
		return nil, backend.Unavailable.Errorf("reading disk %s: %w", id, err)
	case err != nil:
		return nil, err
	case found == nil:
		return nil, c.NoDisk(id)
	case found.Status == cloud.DiskDeleting:
		return nil, backend.NotFound.Errorf("it is too late to change disk %s: it is being deleted", found.Path())
	case found.Status == cloud.DiskFailed:
		return nil, backend.NotReady.Errorf("making disk %s failed: delete the claim", found.Path())
	case found.Status != cloud.DiskReady:
		return nil, backend.InProgress.Errorf("disk %s is %s: waiting for it to be READY", found.Path(), found.Status)
	}
	return found, owner.CheckAlone(found, "given another VolumeAttributesClass")
}

// aboutClass explains that the Compute API refused what a class asks for, for good or for now. In both cases nothing goes on: a
// repeat has the request id of the call before, and would have joined it.
func (b *gceBackend) aboutClass(attributes backend.Attributes, err error) error {
	if reason.Of(err) == reason.Invalid {
		return backend.Invalid.Errorf("the disk can't have the iops or the throughput of VolumeAttributesClass %s, for its type and its size: %w", attributes.Class, err)
	}
	return b.spec.Caller().NotNow("giving it the attributes of VolumeAttributesClass "+attributes.Class, err)
}
