package backlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
)

// hub is the one handler that an informer knows, and hands its events on to the handlers of controllers.
type hub struct {
	toolscache.SharedIndexInformer
	registered toolscache.ResourceEventHandlerRegistration

	mu       sync.Mutex
	handlers []*registration
}

func newHub(of toolscache.SharedIndexInformer) (made *hub, err error) {
	made = &hub{SharedIndexInformer: of}
	if made.registered, err = of.AddEventHandler(made); err != nil {
		return nil, fmt.Errorf("handling events: %w", err)
	}
	return made, nil
}

// AddEventHandlerWithOptions adds a handler. It gets the objects that the store has, and then what happens. The store may be some
// events ahead of the hub: the handler gets these as well, and sees such an object as it was, and then once more as it is.
func (h *hub) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	switch {
	case options.ResyncPeriod != nil:
		return h.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
	case h.IsStopped():
		return nil, errors.New("the informer has stopped: it takes no handler any more")
	}
	added := &registration{events: events{handler: handler}, name: h.registered.HasSyncedChecker().Name(), synced: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, object := range h.GetStore().List() {
		added.events.OnAdd(object, true)
	}
	h.handlers = append(h.handlers, added)
	go h.follow(added)
	return added, nil
}

// awaitSynced waits until the hub had the objects that were there at first.
func (h *hub) awaitSynced(ctx context.Context) error {
	select {
	case <-h.registered.HasSyncedChecker().Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow marks a handler as synced, behind the last object that was there at first.
func (h *hub) follow(added *registration) {
	<-h.registered.HasSyncedChecker().Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	added.events.add(func() { close(added.synced) })
}

// RemoveEventHandler removes a handler, which still gets the events that wait. A second call does nothing.
func (h *hub) RemoveEventHandler(removed toolscache.ResourceEventHandlerRegistration) error {
	ours, isOurs := removed.(*registration)
	if !isOurs {
		return h.SharedIndexInformer.RemoveEventHandler(removed)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handlers = slices.DeleteFunc(h.handlers, func(one *registration) bool { return one == ours })
	return nil
}

// OnAdd hands an event on.
func (h *hub) OnAdd(object any, isInInitialList bool) {
	h.each(func(waiting *events) { waiting.OnAdd(object, isInInitialList) })
}

// OnUpdate hands an event on.
func (h *hub) OnUpdate(before, after any) {
	h.each(func(waiting *events) { waiting.OnUpdate(before, after) })
}

// OnDelete hands an event on.
func (h *hub) OnDelete(object any) {
	h.each(func(waiting *events) { waiting.OnDelete(object) })
}

func (h *hub) each(do func(*events)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.handlers {
		do(&one.events)
	}
}

// registration is that of a handler. It has synced once its handler had the objects that were there at first.
type registration struct {
	events events
	name   string
	synced chan struct{}
}

func (r *registration) HasSynced() bool { return toolscache.IsDone(r) }

func (r *registration) HasSyncedChecker() toolscache.DoneChecker { return r }

func (r *registration) Name() string { return r.name }

func (r *registration) Done() <-chan struct{} { return r.synced }
