package liveread

import (
	"context"

	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cache is a manager's.
type cache interface {
	client.Reader
	GetInformer(ctx context.Context, object client.Object, options ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error)
}
