package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
)

// keyName is where in a Secret a service account key lies.
const keyName = "key.json"

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get,namespace=stowage-system

// keys reads the service account keys that backends name, from Secrets in the manager's
// own namespace and from no other. They are read live, one by one, and never cached:
// whoever may list Secrets sees all of them.
type keys struct {
	live client.Reader
	// namespace is the manager's own; empty where nobody says.
	namespace string
}

// Key implements gce.Keys.
func (k keys) Key(ctx context.Context, name string) (key []byte, version string, err error) {
	if k.namespace == "" {
		return nil, "", backend.Unavailable.Errorf("nobody says in which namespace the Secret %s is: "+
			"start the manager with --leader-election-namespace", name)
	}
	secret := &corev1.Secret{}
	err = k.live.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", backend.Unavailable.Errorf("there is no Secret %s in namespace %s: create it with kubectl create secret generic %s -n %s --from-file=%s=FILE",
			name, k.namespace, name, k.namespace, keyName)
	case apierrors.IsForbidden(err):
		return nil, "", backend.Unavailable.Errorf("the manager may not read Secret %s in namespace %s (config/rbac has a role that may): %w", name, k.namespace, err)
	case err != nil:
		return nil, "", backend.Unavailable.Errorf("reading Secret %s in namespace %s: %w", name, k.namespace, err)
	case len(secret.Data[keyName]) == 0:
		return nil, "", backend.Unavailable.Errorf("Secret %s in namespace %s has no %s: put the service account key there", name, k.namespace, keyName)
	}
	// One that was deleted and made anew has another uid, and may have any version.
	return secret.Data[keyName], string(secret.UID) + "/" + secret.ResourceVersion, nil
}
