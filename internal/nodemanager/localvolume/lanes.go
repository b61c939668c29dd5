package localvolume

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// lanes lets a few passes at a time go over the volumes of one folder. The others are
// parked, and called when one of those ends: if they waited, a disk that answers nobody
// would have all workers, and hold up the volumes of other disks.
type lanes struct {
	mu sync.Mutex
	// queue is where who is called comes from again. Nil: nobody is parked.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// byPath are the lanes of folders in which something goes on.
	byPath map[string]*lane
	// called are those whose place in a lane is kept, with its path.
	called map[reconcile.Request]string
}

type lane struct {
	// busy is how many places are taken.
	busy   int
	parked []reconcile.Request
}

func newLanes() *lanes {
	return &lanes{byPath: map[string]*lane{}, called: map[reconcile.Request]string{}}
}

// Start takes the queue of a controller. It implements source.Source.
func (l *lanes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = queue
	return nil
}

// enter takes a place in a folder's lane until leave is called, or parks the request.
func (l *lanes) enter(path string, request reconcile.Request) (entered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept, called := l.called[request]; called {
		delete(l.called, request)
		if kept == path {
			return true
		}
		l.free(kept) // it has another folder than what had its name before
	}
	if l.byPath[path] == nil {
		l.byPath[path] = &lane{}
	}
	taken := l.byPath[path]
	if taken.busy < concurrentVolumes || l.queue == nil {
		taken.busy++
		return true
	}
	taken.park(request)
	return false
}

// leave gives a place back.
func (l *lanes) leave(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free(path)
}

// drop gives back the place that is kept for a request whose volume is gone.
func (l *lanes) drop(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if path, called := l.called[request]; called {
		delete(l.called, request)
		l.free(path)
	}
}

// free keeps a place for the next who is parked, and calls it.
func (l *lanes) free(path string) {
	taken := l.byPath[path]
	if len(taken.parked) == 0 {
		taken.busy--
		if taken.busy == 0 {
			delete(l.byPath, path)
		}
		return
	}
	next := taken.parked[0]
	taken.parked = taken.parked[1:]
	l.called[next] = path
	l.queue.Add(next)
}

func (l *lane) park(request reconcile.Request) {
	for _, parked := range l.parked {
		if parked == request {
			return
		}
	}
	l.parked = append(l.parked, request)
}
