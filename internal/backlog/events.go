package backlog

import (
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// perBlock is how many events one block of memory has at most.
const perBlock = 512

// events wait for a handler, which gets them in their order, one at a time. An informer adds them.
type events struct {
	handler toolscache.ResourceEventHandler

	mu      sync.Mutex
	waiting [][]any
	// isDelivering: a goroutine delivers them, and ends once there is none.
	isDelivering bool
}

// Of most events there is nothing to say but which object was there: it waits as it is.
type (
	created struct{ object any }
	updated struct{ before, after any }
	deleted struct{ object any }
)

// OnAdd adds an event.
func (e *events) OnAdd(object any, isInInitialList bool) {
	if isInInitialList {
		e.add(object)
	} else {
		e.add(created{object})
	}
}

// OnUpdate adds an event.
func (e *events) OnUpdate(before, after any) { e.add(updated{before, after}) }

// OnDelete adds an event.
func (e *events) OnDelete(object any) { e.add(deleted{object}) }

func (e *events) add(event any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if last := len(e.waiting) - 1; last >= 0 && len(e.waiting[last]) < perBlock {
		e.waiting[last] = append(e.waiting[last], event)
	} else {
		e.waiting = append(e.waiting, []any{event})
	}
	if !e.isDelivering {
		e.isDelivering = true
		go e.deliver()
	}
}

// deliver calls the handler until no event waits.
func (e *events) deliver() {
	for block := e.take(); block != nil; block = e.take() {
		for _, event := range block {
			e.handle(event)
		}
	}
}

// take returns the oldest events that wait.
func (e *events) take() []any {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		e.waiting, e.isDelivering = nil, false
		return nil
	}
	block := e.waiting[0]
	e.waiting[0] = nil
	e.waiting = e.waiting[1:]
	return block
}

// handle calls the handler. One that panics ends the program, as in client-go, or misses this event if the program
// goes on after panics.
func (e *events) handle(event any) {
	defer utilruntime.HandleCrash()
	switch event := event.(type) {
	case created:
		e.handler.OnAdd(event.object, false)
	case updated:
		e.handler.OnUpdate(event.before, event.after)
	case deleted:
		e.handler.OnDelete(event.object)
	case func():
		event()
	default:
		e.handler.OnAdd(event, true)
	}
}
