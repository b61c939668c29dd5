// Package local is the backend with storage on disks local to nodes.
//
// It never touches a disk: it writes NodeVolume objects. The agent of the node that such an object
// names makes or removes the volume, and reports it in the object's conditions. The object is the
// volume's owner record.
package local

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/local/requests"
	"github.com/stowage-dev/stowage/internal/sharedread"
)

// Kind makes local backends. NewKind makes it.
type Kind struct {
	// Client reads nodes and NodeVolumes, from a cache where it has one, and
	// writes NodeVolumes.
	Client client.Client
	// Live reads NodeVolumes from the API server itself.
	Live client.Reader
	// Base is the folder on every node below which the node agents work.
	Base string
	// found are what agents found without a NodeVolume, by backend. Volumes that are removed at the same time share a read.
	found *sharedread.Reads[string, []unrecorded]
	// requests are those of all backends.
	requests *requests.Requests
}

// NewKind returns the kind with these fields.
func NewKind(client client.Client, live client.Reader, base string) Kind {
	found := func(ctx context.Context, name string) ([]unrecorded, error) { return listUnrecorded(ctx, live, name) }
	return Kind{Client: client, Live: live, Base: base, found: sharedread.New(found), requests: requests.New()}
}

// Follow has a cache's watch show what is requested of each node, so that it isn't listed for each new volume. It must be called
// before the first volume is provisioned.
func (k Kind) Follow(ctx context.Context, cached ctrlcache.Informers) error {
	return k.requests.Follow(ctx, cached)
}

// Type is Local.
func (Kind) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.LocalType }

// Open makes the backend of one StorageBackend object.
func (k Kind) Open(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	spec := *object.Spec.Local
	if !strings.HasPrefix(string(spec.Path), k.Base+"/") {
		return nil, backend.Invalid.Errorf("local.path %s is not below %s, the folder that the node agents work in: "+
			"choose a path below it, or give manager and node agents another folder (config/components/local-base does)",
			spec.Path, k.Base)
	}
	return &localBackend{Kind: k, name: object.Name, spec: spec}, nil
}

type localBackend struct {
	Kind
	name string
	spec stowagev1alpha1.LocalBackend
}

var _ backend.Prober = (*localBackend)(nil)

// Capabilities are those of directories, or of images, on one node's disk.
func (b *localBackend) Capabilities() backend.Capabilities {
	can := backend.Capabilities{
		// A volume is on one node; the node side restricts it to one pod.
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod},
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem},
		Advisory:    true,
		Clones:      true,
		Restores:    true,
		InPlace:     true,
	}
	if b.spec.Layout == stowagev1alpha1.LayoutImage {
		can.VolumeModes = append(can.VolumeModes, corev1.PersistentVolumeBlock)
		can.FSTypes = []string{"ext4", "xfs"}
		can.Advisory = false
	}
	return can
}
