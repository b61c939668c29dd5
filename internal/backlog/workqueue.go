package backlog

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// maxReady is how many items of the lowest priority are in a work queue's maps.
const maxReady = 256

// NewQueue makes the work queue of a controller, as its options' NewQueue. It is controller-runtime's queue. Objects of the
// lowest priority, which are there at the start or are compared again, wait outside its maps, in their order. One that is
// added once more while it is among the next maxReady is handed out twice. The queue's metrics have no more than those.
func NewQueue[T comparable](controller string, limiter workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	return &workQueue[T]{PriorityQueue: priorityqueue.New(controller, func(o *priorityqueue.Opts[T]) { o.RateLimiter = limiter })}
}

// workQueue fills a queue with the items that wait, as workers take others.
type workQueue[T comparable] struct {
	priorityqueue.PriorityQueue[T]

	mu sync.Mutex
	// order are the items that wait, and waiting is the set of them. Both are nil while there is none.
	order   []T
	waiting sets.Set[T]
}

// AddWithOpts adds items. Those of the lowest priority may have to wait.
func (w *workQueue[T]) AddWithOpts(o priorityqueue.AddOpts, items ...T) {
	if ptr.Deref(o.Priority, 0) != handler.LowPriority || o.After > 0 || o.RateLimited {
		w.PriorityQueue.AddWithOpts(o, items...)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = sets.New[T]()
	}
	for _, item := range items {
		if !w.waiting.Has(item) {
			w.waiting.Insert(item)
			w.order = append(w.order, item)
		}
	}
	w.fill()
}

// GetWithPriority waits for an item. Items that wait are added before the last ready one is taken.
func (w *workQueue[T]) GetWithPriority() (item T, priority int, shutdown bool) {
	w.mu.Lock()
	w.fill()
	w.mu.Unlock()
	return w.PriorityQueue.GetWithPriority()
}

// Get waits for an item.
func (w *workQueue[T]) Get() (item T, shutdown bool) {
	item, _, shutdown = w.GetWithPriority()
	return item, shutdown
}

// Len is the number of items that are ready, and of those that wait.
func (w *workQueue[T]) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.PriorityQueue.Len() + len(w.order)
}

// fill adds items that wait, once half of the ready ones are taken.
func (w *workQueue[T]) fill() {
	if len(w.order) == 0 {
		return
	}
	ready := w.PriorityQueue.Len()
	if ready > maxReady/2 {
		return
	}
	next := w.order[:min(maxReady-ready, len(w.order))]
	w.waiting.Delete(next...)
	w.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, next...)
	if w.order = w.order[len(next):]; len(w.order) == 0 {
		w.order, w.waiting = nil, nil
	}
}
