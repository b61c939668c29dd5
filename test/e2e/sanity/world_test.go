package sanity_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce"
	"github.com/stowage-dev/stowage/internal/backend/local"
	"github.com/stowage-dev/stowage/internal/backend/nfs"
	"github.com/stowage-dev/stowage/internal/program"
)

// world is what the controller works with.
type world struct {
	client  client.Client
	backend backend.Backend
}

// open opens a suite's backend as the manager does.
func open(ctx context.Context, p Plan) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme, err := program.Scheme()
	if err != nil {
		return nil, err
	}
	w := &world{}
	if w.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	cluster, object := &corev1.Namespace{}, &stowagev1alpha1.StorageBackend{}
	if err := w.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, cluster); err != nil {
		return nil, fmt.Errorf("finding out which cluster this is: %w", err)
	}
	if err := w.client.Get(ctx, client.ObjectKey{Name: p.Subject.Backend}, object); err != nil {
		return nil, err
	}
	kinds := backend.NewRegistry(nfs.NewKind(cluster.UID, ""), gce.NewKind(cluster.UID, noKeys{}),
		local.Kind{Client: w.client, Live: w.client, Base: p.Base})
	w.backend, err = kinds.Open(object)
	return w, err
}

// node reads a Node object; nil where there is none.
func (w *world) node(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := w.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return node, nil
}

// noKeys has no service account keys: gce-mock asks for no sign-in.
type noKeys struct{}

// Key reports that there is none.
func (noKeys) Key(context.Context, string) (key []byte, version string, err error) {
	return nil, "", backend.Unavailable.Errorf("there are no keys")
}
