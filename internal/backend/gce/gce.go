// Package gce is the backend whose storage is persistent disks of Google Compute
// Engine.
//
// A volume is a disk of its name, in one zone; the disk's description says whose it is.
// Nothing is changed or removed whose description doesn't name this cluster, this backend
// and the claim that the id is of. Package cloud speaks to the Compute API, at any endpoint
// that does; here is decided which disk is meant, and what may be done to it. What is under
// way is found again by looking, never by remembering. No node is touched, and no cluster is
// read: keys to sign in with come through an interface.
package gce

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/volume"
)

type gceBackend struct {
	kind    *Kind
	name    string
	cluster string
	spec    settings
}

// oneMachine is what the types of disks begin with that only one machine can have, unless
// an access mode was set on them that keeps everybody from writing: Google's Hyperdisks.
const oneMachine = "hyperdisk-"

// Capabilities are those of a disk: one machine writes it, or many read it.
func (b *gceBackend) Capabilities() backend.Capabilities {
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	if !strings.HasPrefix(b.spec.diskType, oneMachine) {
		modes = append(modes, corev1.ReadOnlyMany)
	}
	return backend.Capabilities{
		AccessModes: modes,
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock},
		FSTypes:     []string{"ext4", "xfs"},
	}
}

// Provision finds the volume's disk, or makes it.
func (b *gceBackend) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	return inCloud(ctx, b, "provisioning volume "+request.ID, func(c *cloud.Client) (*backend.Volume, error) {
		return b.provision(ctx, c, request)
	})
}

// Delete removes the volume's disk, in whatever zone it is.
func (b *gceBackend) Delete(ctx context.Context, id string) error {
	_, err := inCloud(ctx, b, "deleting volume "+id, func(c *cloud.Client) (any, error) { return nil, b.delete(ctx, c, id) })
	return err
}

// Expand makes the volume's disk larger; its node grows the file system.
func (b *gceBackend) Expand(ctx context.Context, id string, capacity resource.Quantity) (backend.Expansion, error) {
	return inCloud(ctx, b, "growing volume "+id, func(c *cloud.Client) (backend.Expansion, error) {
		return b.expand(ctx, c, id, capacity)
	})
}

// Retain labels the volume's disk.
func (b *gceBackend) Retain(ctx context.Context, id string) (place string, err error) {
	return inCloud(ctx, b, "retaining volume "+id, func(c *cloud.Client) (string, error) { return b.retain(ctx, c, id) })
}

// List tells of the disks that bear this backend's labels, and whose descriptions agree.
func (b *gceBackend) List(ctx context.Context) ([]backend.Held, error) {
	return inCloud(ctx, b, "listing disks", func(c *cloud.Client) ([]backend.Held, error) { return b.list(ctx, c) })
}

// Probe signs in, and looks for the zones and the type of disk.
func (b *gceBackend) Probe(ctx context.Context) error {
	_, err := inCloud(ctx, b, "trying the Compute API", func(c *cloud.Client) (any, error) { return nil, b.probe(ctx, c) })
	return err
}

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
	case !validID.MatchString(id):
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
	case !validID.MatchString(id):
		return false, nil // Attach refused it
	}
	doing := fmt.Sprintf("looking for volume %s at node %s", id, node.Name)
	return inCloud(ctx, b, doing, func(c *cloud.Client) (bool, error) { return do(ctx, c, id, node) })
}

// Attachments tells which instances have this backend's disks.
func (b *gceBackend) Attachments(ctx context.Context) ([]backend.Attached, error) {
	return inCloud(ctx, b, "listing attached disks", func(c *cloud.Client) ([]backend.Attached, error) { return b.attachments(ctx, c) })
}

// ObserveNode tells what became of the node's instance.
func (b *gceBackend) ObserveNode(ctx context.Context, node backend.NodeIdentity) (backend.Machine, error) {
	return inCloud(ctx, b, "looking for the instance of node "+node.Name, func(c *cloud.Client) (backend.Machine, error) {
		return observe(ctx, c, node)
	})
}

var (
	_ backend.Prober           = (*gceBackend)(nil)
	_ backend.Lister           = (*gceBackend)(nil)
	_ backend.Retainer         = (*gceBackend)(nil)
	_ backend.Expander         = (*gceBackend)(nil)
	_ backend.Attacher         = (*gceBackend)(nil)
	_ backend.AttachmentLister = (*gceBackend)(nil)
	_ backend.NodeObserver     = (*gceBackend)(nil)
)

// inCloud does something in the cloud, and gives what goes wrong its kind.
func inCloud[Answer any](ctx context.Context, b *gceBackend, doing string, do func(*cloud.Client) (Answer, error)) (answer Answer, err error) {
	c, err := b.kind.signIn(ctx, b.spec)
	if err == nil {
		answer, err = do(c)
	}
	if err != nil {
		var none Answer
		return none, b.spec.Translate(doing, err)
	}
	return answer, nil
}

// volume is the volume that a disk is.
func (b *gceBackend) volume(found *cloud.Disk, request backend.Request) *backend.Volume {
	made := &backend.Volume{
		Handle:       found.Name,
		Attributes:   map[string]string{stowagev1alpha1.DiskAttribute: found.Path()},
		Capacity:     found.Capacity(),
		NodeAffinity: withinZone(found.ZoneName()),
	}
	if request.VolumeMode != corev1.PersistentVolumeBlock {
		// The node formats a disk that is empty.
		made.FSType = cmp.Or(request.FSType, b.spec.fsType)
	}
	return made
}
