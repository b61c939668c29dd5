package resolve

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Resolver resolves pods' volumes. It reads live: a node may get the claims and volumes of its pods,
// but not list or watch them. The cache has the node.
type Resolver struct {
	Node           string
	Cached, Live   client.Reader
	Types, Devices volumes.Registry
}

// get reads an object. Forbidden means the same as NotFound. The authorizer lets a node read the
// objects of its pods, and may learn of a pod a moment later than the node.
func (r *Resolver) get(ctx context.Context, key client.ObjectKey, object client.Object, what string) error {
	err := r.Live.Get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err):
		return WaitFor("waiting for %s, which doesn't exist", what)
	case apierrors.IsForbidden(err):
		return WaitFor("waiting for %s, which doesn't exist or isn't readable from this node yet", what)
	case err != nil:
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return nil
}
