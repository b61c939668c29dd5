package gce

import (
	"context"
	"fmt"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Attach attaches the volume's disk to the node's instance, under the volume's id. An id that
// is a disk's path is of a disk that Stowage didn't make.
func (b *gceBackend) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	doing := fmt.Sprintf("attaching volume %s to node %s", request.ID, request.Node.Name)
	return inCloud(ctx, b, doing, func(c *cloud.Client) (backend.Attachment, error) {
		if volume.IsDiskPath(request.ID) {
			return b.attachExisting(ctx, c, request)
		}
		return b.attach(ctx, c, request)
	})
}

// Detach detaches the volume's disk from the node's instance.
func (b *gceBackend) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	do := b.detach
	switch {
	case existingID.MatchString(id):
		do = b.detachExisting
	case !owner.ValidID.MatchString(id):
		return nil // Attach refused it
	}
	doing := fmt.Sprintf("detaching volume %s from node %s", id, node.Name)
	_, err := inCloud(ctx, b, doing, func(c *cloud.Client) (any, error) { return nil, do(ctx, c, id, node) })
	return err
}

// IsAttached looks for the volume's disk at the node's instance.
func (b *gceBackend) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	do := b.isAttached
	switch {
	case existingID.MatchString(id):
		do = b.isExistingAttached
	case !owner.ValidID.MatchString(id):
		return false, nil // Attach refused it
	}
	doing := fmt.Sprintf("looking for volume %s at node %s", id, node.Name)
	return inCloud(ctx, b, doing, func(c *cloud.Client) (bool, error) { return do(ctx, c, id, node) })
}
