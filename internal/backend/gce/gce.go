// Package gce is the backend with storage on persistent disks of Google Compute
// Engine.
//
// A volume is a disk with the volume's id as name, in one zone. The disk's description is its
// owner record: only disks whose record names this cluster, this backend and the id's claim are
// changed or removed. Package cloud calls the Compute API; this package decides which disk is
// meant, and what may be done to it. It finds work in progress by reading, never by remembering.
// It touches no node and reads no cluster: keys for signing in come through an interface.
package gce

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/newdisk"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
	"github.com/stowage-dev/stowage/internal/backend/gce/settings"
)

type gceBackend struct {
	kind  *Kind
	owner owner.Owner
	spec  settings.Settings
}

// Kind makes GCE backends.
type Kind struct {
	cluster types.UID
	keys    Keys
	clients *cloud.Clients
}

// Keys reads the service account keys that backends name.
type Keys interface {
	// Key returns the key in a Secret, and a version that changes soon after the Secret did. The
	// message of an Unavailable error says what an administrator has to do.
	Key(ctx context.Context, secret string) (key []byte, version string, err error)
}

// NewKind makes the kind for a cluster, whose identity is the UID of its namespace
// kube-system.
func NewKind(cluster types.UID, keys Keys) *Kind {
	return &Kind{cluster: cluster, keys: keys, clients: cloud.NewClients()}
}

// Type is GCE.
func (*Kind) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.GCEType }

// Open makes the backend of one StorageBackend object.
func (k *Kind) Open(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	if k.cluster == "" {
		return nil, backend.Unavailable.Errorf("the identity of this cluster isn't known, so disks can't be distinguished from those of others: " +
			"let the manager read the namespace kube-system")
	}
	spec, err := settings.From(*object.Spec.GCE)
	if err != nil {
		return nil, err
	}
	return &gceBackend{kind: k, owner: owner.Owner{Cluster: string(k.cluster), Backend: object.Name}, spec: spec}, nil
}

// signIn makes the client of one call to the backend. It reads the key each time, so a new key is
// used at once, and a removed key never again.
func (k *Kind) signIn(ctx context.Context, spec settings.Settings) (*cloud.Client, error) {
	var with cloud.Key
	if spec.Secret != "" {
		var err error
		if with.Text, with.Version, err = k.keys.Key(ctx, spec.Secret); err != nil {
			return nil, err
		}
	}
	return k.clients.SignIn(ctx, spec.Target, with)
}

// maker makes the backend's disks.
func (b *gceBackend) maker() newdisk.Maker { return newdisk.Maker{Owner: b.owner, Spec: b.spec} }

// Capabilities are those of disks of any type, since a class can name one. Package accessmode says what a type has not. No
// file system of Stowage's can be written by two machines.
func (b *gceBackend) Capabilities() backend.Capabilities {
	return backend.Capabilities{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadOnlyMany, corev1.ReadWriteMany},
		OnlyBlock:   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock},
		FSTypes:     []string{"ext4", "xfs"},
		Clones:      true,
		Restores:    true,
	}
}

var (
	_ backend.Prober           = (*gceBackend)(nil)
	_ backend.Lister           = (*gceBackend)(nil)
	_ backend.Retainer         = (*gceBackend)(nil)
	_ backend.Expander         = (*gceBackend)(nil)
	_ backend.Modifier         = (*gceBackend)(nil)
	_ backend.Attacher         = (*gceBackend)(nil)
	_ backend.Snapshotter      = (*gceBackend)(nil)
	_ backend.AttachmentLister = (*gceBackend)(nil)
	_ backend.NodeObserver     = (*gceBackend)(nil)
)

// inCloud signs in, does some work, and gives its errors their kinds.
func inCloud[Answer any](ctx context.Context, b *gceBackend, doing string, do func(*cloud.Client) (Answer, error)) (answer Answer, err error) {
	c, err := b.kind.signIn(ctx, b.spec)
	if err == nil {
		answer, err = do(c)
	}
	if err != nil {
		var none Answer
		return none, b.spec.Caller().Translate(doing, err)
	}
	return answer, nil
}
