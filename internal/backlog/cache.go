package backlog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewCache makes a cache, as a manager's NewCache. The events of each kind wait for the handlers of controllers in memory that is given
// back.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	made, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	return &informers{Cache: made, hubs: map[cache.Informer]*hub{}}, nil
}

// informers are those of a cache.
type informers struct {
	cache.Cache

	mu   sync.Mutex
	hubs map[cache.Informer]*hub
}

func (c *informers) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	return c.get(ctx, options, func(options ...cache.InformerGetOption) (cache.Informer, error) {
		return c.Cache.GetInformer(ctx, object, options...)
	})
}

func (c *informers) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	return c.get(ctx, options, func(options ...cache.InformerGetOption) (cache.Informer, error) {
		return c.Cache.GetInformerForKind(ctx, kind, options...)
	})
}

// get makes the hub before the informer has objects: later, all of them would wait for the hub, too. If the informer has them, the
// hub had them as well.
func (c *informers) get(
	ctx context.Context, options []cache.InformerGetOption, get func(...cache.InformerGetOption) (cache.Informer, error),
) (cache.Informer, error) {
	found, err := get(append(slices.Clone(options), cache.BlockUntilSynced(false))...)
	if err != nil {
		return nil, err
	}
	shared, isOne := found.(toolscache.SharedIndexInformer)
	if !isOne {
		// Several, of one namespace each.
		return get(options...)
	}
	of, err := c.hubOf(shared)
	if err != nil {
		return nil, err
	}
	if _, err := get(options...); err != nil {
		return nil, err
	}
	if shared.HasSynced() {
		err = of.awaitSynced(ctx)
	}
	return of, err
}

func (c *informers) hubOf(shared toolscache.SharedIndexInformer) (*hub, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, found := c.hubs[shared]; found {
		return known, nil
	}
	maps.DeleteFunc(c.hubs, func(of cache.Informer, _ *hub) bool { return of.IsStopped() })
	made, err := newHub(shared)
	if err == nil {
		c.hubs[shared] = made
	}
	return made, err
}
