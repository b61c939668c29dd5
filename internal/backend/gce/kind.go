package gce

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// Keys reads the service account keys that backends name.
type Keys interface {
	// Key returns the key in a Secret, and a word that changes when the Secret does: soon
	// after it did. An error of kind Unavailable tells what an administrator has to do.
	Key(ctx context.Context, secret string) (key []byte, version string, err error)
}

// Kind makes GCE backends.
type Kind struct {
	cluster types.UID
	keys    Keys
	clients *cloud.Clients
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
