package main

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
)

// keyName is the key of a Secret that has the service account key.
const keyName = "key.json"

// keyTrusted is the longest time for which a key is used without a new read: a watch may end
// unnoticed.
const keyTrusted = 10 * time.Minute

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;watch,namespace=stowage-system

// keys reads the Secrets that backends name, in the manager's own namespace and in no other. A
// service account key is one of them. Each is read live, and used until a watch of that one Secret
// reports a change.
type keys struct {
	// ctx ends the watches.
	ctx     context.Context //nolint:containedctx // watches outlive the calls that begin them
	cluster client.WithWatch
	// namespace is the manager's own; empty if it is not known.
	namespace string
	now       func() time.Time

	mu    sync.Mutex
	known map[string]*knownKey
}

// knownKey is a Secret that is watched.
type knownKey struct {
	data    map[string][]byte
	version string
	read    time.Time
	stop    context.CancelFunc
}

func newKeys(ctx context.Context, cluster client.WithWatch, namespace string) *keys {
	return &keys{ctx: ctx, cluster: cluster, namespace: namespace, now: time.Now, known: map[string]*knownKey{}}
}

// Key implements gce.Keys.
func (k *keys) Key(ctx context.Context, name string) (key []byte, version string, err error) {
	known, err := k.get(ctx, name, " --from-file="+keyName+"=FILE")
	switch {
	case err != nil:
		return nil, "", err
	case len(known.data[keyName]) == 0:
		return nil, "", backend.Unavailable.Errorf("Secret %s in namespace %s has no %s: put the service account key there", name, k.namespace, keyName)
	}
	return known.data[keyName], known.version, nil
}

// Secret returns what a Secret has. Callers don't change it.
func (k *keys) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	known, err := k.get(ctx, name, " --from-literal=KEY=VALUE")
	if err != nil {
		return nil, err
	}
	return known.data, nil
}

// get returns a Secret. Of one that is missing, the error says how it is created with these flags.
func (k *keys) get(ctx context.Context, name, flags string) (*knownKey, error) {
	if k.namespace == "" {
		return nil, backend.Unavailable.Errorf("the namespace of the Secret %s is not known: "+
			"start the manager with --leader-election-namespace", name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.known[name]; known != nil {
		if k.now().Sub(known.read) < keyTrusted {
			return known, nil
		}
		known.stop()
		delete(k.known, name)
	}
	secret, err := k.read(ctx, name, flags)
	if err != nil {
		return nil, err
	}
	// A recreated Secret has another uid, and may have any version.
	read := &knownKey{data: secret.Data, version: string(secret.UID) + "/" + secret.ResourceVersion, read: k.now()}
	k.watch(name, secret.ResourceVersion, read) //nolint:contextcheck // it outlives the call
	return read, nil
}

// read reads a Secret live.
func (k *keys) read(ctx context.Context, name, flags string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.cluster.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, backend.Unavailable.Errorf("there is no Secret %s in namespace %s: create it with kubectl create secret generic %s -n %s%s",
			name, k.namespace, name, k.namespace, flags)
	case apierrors.IsForbidden(err):
		return nil, backend.Unavailable.Errorf("the manager may not read Secret %s in namespace %s (config/rbac has a role that may): %w", name, k.namespace, err)
	case err != nil:
		return nil, backend.Unavailable.Errorf("reading Secret %s in namespace %s: %w", name, k.namespace, err)
	}
	return secret, nil
}

// watch keeps a key until the watch reports a change of its Secret, or ends. Without a watch no
// key is kept. The watch begins at the version that was read, so that it misses nothing.
func (k *keys) watch(name, from string, read *knownKey) {
	ctx, stop := context.WithCancel(k.ctx)
	watching, err := k.cluster.Watch(ctx, &corev1.SecretList{}, client.InNamespace(k.namespace), client.MatchingFields{"metadata.name": name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}})
	if err != nil {
		stop()
		return
	}
	read.stop = stop
	k.known[name] = read
	go func() {
		defer stop()
		defer watching.Stop()
		for event := range watching.ResultChan() {
			if secret, is := event.Object.(*corev1.Secret); !is || secret.Name == name {
				break
			}
		}
		k.forget(name, read)
	}()
}

// forget drops a key, unless another was read since.
func (k *keys) forget(name string, read *knownKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known[name] == read {
		delete(k.known, name)
	}
}
