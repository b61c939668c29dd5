package statemetrics

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/wrap"
)

// Informers are those of a cache.
type Informers interface {
	GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error)
}

// volumesIn returns all volumes of a cache, which are not to be changed. A List would copy each of them, 600 bytes at least.
func volumesIn(ctx context.Context, informers Informers) ([]any, error) {
	informer, err := informers.GetInformer(ctx, &corev1.PersistentVolume{})
	if err != nil {
		return nil, wrap.Error(err, "listing the volumes for metrics")
	}
	stored, has := informer.(interface{ GetStore() toolscache.Store })
	switch {
	case !has:
		return nil, fmt.Errorf("listing the volumes for metrics: a %T has no store", informer)
	case !informer.HasSynced():
		return nil, errors.New("listing the volumes for metrics: the cache has not begun")
	}
	return stored.GetStore().List(), nil
}
