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
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

type gceBackend struct {
	kind    *Kind
	name    string
	cluster string
	spec    settings
}

// oneMachine is what the types of disks begin with that only one machine can have, unless
// an access mode was set on them that keeps everybody from writing: Google's Hyperdisks.
const hyperdiskPrefix = "hyperdisk-"

// Kind makes GCE backends.
type Kind struct {
	cluster types.UID
	keys    Keys
	clients *cloud.Clients
}

// Keys reads the service account keys that backends name.
type Keys interface {
	// Key returns the key in a Secret, and a word that changes when the Secret does: soon
	// after it did. An error of kind Unavailable tells what an administrator has to do.
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
		return nil, backend.Unavailable.Errorf("the identity of this cluster isn't known, so that disks can't be told from those of others: " +
			"let the manager read the namespace kube-system")
	}
	spec, err := settingsFrom(*object.Spec.GCE)
	if err != nil {
		return nil, err
	}
	return &gceBackend{kind: k, name: object.Name, cluster: string(k.cluster), spec: spec}, nil
}

// SignIn makes what one call to the backend works with. The key is asked for each
// time, so that a new one holds from then on, and one that was taken away for none.
func (k *Kind) signIn(ctx context.Context, spec settings) (*cloud.Client, error) {
	var with cloud.Key
	if spec.Secret != "" {
		var err error
		if with.Text, with.Version, err = k.keys.Key(ctx, spec.Secret); err != nil {
			return nil, err
		}
	}
	return k.clients.SignIn(ctx, spec.Target, with)
}

// Capabilities are those of a disk: one machine writes it, or many read it.
func (b *gceBackend) Capabilities() backend.Capabilities {
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	if !strings.HasPrefix(b.spec.diskType, hyperdiskPrefix) {
		modes = append(modes, corev1.ReadOnlyMany)
	}
	return backend.Capabilities{
		AccessModes: modes,
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock},
		FSTypes:     []string{"ext4", "xfs"},
	}
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
