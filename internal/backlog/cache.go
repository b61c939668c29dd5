package backlog

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewCache makes a cache, as a manager's NewCache. Events wait for the handlers of controllers in memory that is given back.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	made, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	return informers{made}, nil
}

// informers are those of a cache.
type informers struct{ cache.Cache }

func (c informers) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	found, err := c.Cache.GetInformer(ctx, object, options...)
	if err != nil {
		return nil, err
	}
	return informer{found}, nil
}

func (c informers) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	found, err := c.Cache.GetInformerForKind(ctx, kind, options...)
	if err != nil {
		return nil, err
	}
	return informer{found}, nil
}

// informer has a backlog for each handler that is added with options, as those of controllers are.
type informer struct{ cache.Informer }

func (i informer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	waiting := &events{handler: handler}
	added, err := i.Informer.AddEventHandlerWithOptions(waiting, options)
	if err != nil {
		return nil, err
	}
	return follow(added, waiting), nil
}

func (i informer) RemoveEventHandler(registered toolscache.ResourceEventHandlerRegistration) error {
	if followed, known := registered.(*registration); known {
		registered = followed.ResourceEventHandlerRegistration
	}
	return i.Informer.RemoveEventHandler(registered)
}

// registration is that of a handler with a backlog. It has synced once its handler had the objects that were there at first.
type registration struct {
	toolscache.ResourceEventHandlerRegistration
	synced chan struct{}
}

func follow(added toolscache.ResourceEventHandlerRegistration, waiting *events) *registration {
	followed := &registration{ResourceEventHandlerRegistration: added, synced: make(chan struct{})}
	go func() {
		<-added.HasSyncedChecker().Done()
		waiting.add(func() { close(followed.synced) })
	}()
	return followed
}

func (r *registration) HasSynced() bool { return toolscache.IsDone(r) }

func (r *registration) HasSyncedChecker() toolscache.DoneChecker { return r }

func (r *registration) Name() string {
	return r.ResourceEventHandlerRegistration.HasSyncedChecker().Name()
}

func (r *registration) Done() <-chan struct{} { return r.synced }
