// Package turns lets a few passes at a time go over the volumes of one folder, and parks the
// others until one ends. So a disk that hangs doesn't take up all workers, long removals
// and copies leave room for new volumes, and namespaces have their turns one after the other.
package slots

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// concurrentVolumes is how many volumes of a folder are worked on at once: most of the time
// is spent on waiting for the API server, and for the disk to have written.
const concurrentVolumes = 16

// longPasses is how many of the passes over volumes of a folder may remove or copy files.
const longPasses = concurrentVolumes / 2

// Lanes lets a few passes at a time go over the volumes of one folder. The others are
// parked, and called when one of those ends: if they waited, a disk that answers nobody
// would have all workers, and hold up the volumes of other disks.
type Lanes struct {
	mu sync.Mutex
	// queue is where who is called comes from again. Nil: nobody is parked.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// byPath are the lanes of folders in which something goes on.
	byPath map[string]*lane
	// called are those whose place in a lane is kept.
	called map[reconcile.Request]Pass
	// parked are the requests that wait to be called.
	parked map[reconcile.Request]bool
}

// Pass is what goes over a volume in a place of its folder's lane.
type Pass struct {
	Path, Namespace string
	// long: it removes files or copies them, which takes as long as a tenant makes it.
	Long bool
}

type lane struct {
	// busy is how many places are taken, and long how many of them by long passes.
	busy, long int
	// short and longer are the parked passes. While there are both, longNext says which of
	// them has its turn.
	short, longer turns
	longNext      bool
}

// NewLanes returns lanes in which no pass is.
func NewLanes() *Lanes {
	return &Lanes{byPath: map[string]*lane{}, called: map[reconcile.Request]Pass{}, parked: map[reconcile.Request]bool{}}
}

// Start takes the queue of a controller. It implements source.Source.
func (l *Lanes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = queue
	return nil
}

// Enter takes a place in a folder's lane until leave is called, or parks the request.
func (l *Lanes) Enter(wanted Pass, request reconcile.Request) (entered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept, called := l.called[request]; called {
		delete(l.called, request)
		if kept.Path == wanted.Path && kept.Long == wanted.Long {
			return true
		}
		l.free(kept) // it has another folder than what had its name before, or was deleted
	}
	if l.byPath[wanted.Path] == nil {
		l.byPath[wanted.Path] = &lane{}
	}
	taken := l.byPath[wanted.Path]
	if taken.hasPlace(wanted.Long) || l.queue == nil {
		taken.take(wanted.Long)
		return true
	}
	if !l.parked[request] {
		l.parked[request] = true
		taken.park(wanted, request)
	}
	return false
}

// Leave gives a place back.
func (l *Lanes) Leave(ended Pass) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free(ended)
}

// Drop gives back the place that is kept for a request whose volume is gone.
func (l *Lanes) Drop(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept, called := l.called[request]; called {
		delete(l.called, request)
		l.free(kept)
	}
}

// free gives a place back, and keeps the places that there are for parked requests.
func (l *Lanes) free(ended Pass) {
	taken := l.byPath[ended.Path]
	taken.leave(ended.Long)
	for {
		next, long, found := taken.next()
		if !found {
			break
		}
		taken.take(long)
		delete(l.parked, next)
		l.called[next] = Pass{Path: ended.Path, Long: long}
		l.queue.Add(next)
	}
	if taken.busy == 0 {
		delete(l.byPath, ended.Path)
	}
}

// hasPlace says whether there is a place. Not all of them are for long passes: new volumes
// never wait for those alone.
func (l *lane) hasPlace(long bool) bool {
	return l.busy < concurrentVolumes && (!long || l.long < longPasses)
}

func (l *lane) take(long bool) {
	l.busy++
	if long {
		l.long++
	}
}

func (l *lane) leave(long bool) {
	l.busy--
	if long {
		l.long--
	}
}

func (l *lane) park(waiting Pass, request reconcile.Request) {
	if waiting.Long {
		l.longer.add(waiting.Namespace, request)
	} else {
		l.short.add(waiting.Namespace, request)
	}
}

// next takes out a parked request for which there is a place. Short and long passes take
// turns where both wait.
func (l *lane) next() (next reconcile.Request, long, found bool) {
	mayShort := !l.short.isEmpty() && l.hasPlace(false)
	mayLong := !l.longer.isEmpty() && l.hasPlace(true)
	switch {
	case mayLong && (l.longNext || !mayShort):
		l.longNext = false
		return l.longer.next(), true, true
	case mayShort:
		l.longNext = true
		return l.short.next(), false, true
	default:
		return next, false, false
	}
}
