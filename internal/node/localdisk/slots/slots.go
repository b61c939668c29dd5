// Package slots limits how many volumes of one folder are reconciled at once, and parks the
// other requests until a slot is free. So a disk that hangs doesn't take all workers. Long
// removals and copies leave slots to new volumes, and namespaces share the slots fairly.
package slots

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// slotsOfFolder is how many volumes of a folder are worked on at once. Most of the time a reconcile
// waits for the API server, or for the disk to write.
const slotsOfFolder = 16

// slotsForLong is how many of the slots of a folder long work may have.
const slotsForLong = slotsOfFolder / 2

// Slots has the slots of all folders. A request without a slot is parked, and queued again
// when a slot is free. It never waits: one disk that hangs would take all workers from the
// other disks. All methods are safe for concurrent use.
type Slots struct {
	mu sync.Mutex
	// queue gets parked requests again. Nil: no request is parked.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// folders are those with work, by their paths.
	folders map[string]*folder
	// reserved are slots for requests that were parked and are queued again.
	reserved map[reconcile.Request]Work
	parked   map[reconcile.Request]bool
}

// Work is what a request needs a slot for.
type Work struct {
	Path, Namespace string
	// Long work removes or copies files: it takes as long as a tenant makes it.
	Long bool
}

// New returns slots that are all free.
func New() *Slots {
	return &Slots{folders: map[string]*folder{}, reserved: map[reconcile.Request]Work{}, parked: map[reconcile.Request]bool{}}
}

// Start takes the queue of a controller. It implements source.Source.
func (s *Slots) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
	return nil
}

// TryAcquire takes a slot until Release is called, or parks the request.
func (s *Slots) TryAcquire(work Work, request reconcile.Request) (acquired bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot, found := s.reserved[request]; found {
		delete(s.reserved, request)
		if slot.Path == work.Path && slot.Long == work.Long {
			return true
		}
		s.free(slot) // The volume was deleted, or is another of the same name.
	}
	if s.folders[work.Path] == nil {
		s.folders[work.Path] = &folder{}
	}
	of := s.folders[work.Path]
	if of.hasSlot(work.Long) || s.queue == nil {
		of.take(work.Long)
		return true
	}
	if !s.parked[request] {
		s.parked[request] = true
		of.park(work, request)
	}
	return false
}

// Release frees the slot of work that ended.
func (s *Slots) Release(ended Work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(ended)
}

// Forget frees the reserved slot of a volume that is gone.
func (s *Slots) Forget(request reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot, found := s.reserved[request]; found {
		delete(s.reserved, request)
		s.free(slot)
	}
}

// free frees a slot, and reserves the free slots for parked requests.
func (s *Slots) free(ended Work) {
	of := s.folders[ended.Path]
	of.release(ended.Long)
	for {
		next, long, found := of.next()
		if !found {
			break
		}
		of.take(long)
		delete(s.parked, next)
		s.reserved[next] = Work{Path: ended.Path, Long: long}
		s.queue.Add(next)
	}
	if of.busy == 0 {
		delete(s.folders, ended.Path)
	}
}

// folder has the slots of one folder.
type folder struct {
	// busy is how many slots are taken, and long how many of them by long work.
	busy, long int
	// short and longer are the parked requests. Where there are both, longNext reports which
	// is next.
	short, longer fairQueue
	longNext      bool
}

// hasSlot reports whether a slot is free. Long work gets only a part of them: new volumes
// never wait for long work alone.
func (f *folder) hasSlot(long bool) bool {
	return f.busy < slotsOfFolder && (!long || f.long < slotsForLong)
}

func (f *folder) take(long bool) {
	f.busy++
	if long {
		f.long++
	}
}

func (f *folder) release(long bool) {
	f.busy--
	if long {
		f.long--
	}
}

func (f *folder) park(work Work, request reconcile.Request) {
	if work.Long {
		f.longer.add(work.Namespace, request)
	} else {
		f.short.add(work.Namespace, request)
	}
}

// next removes a parked request that can have a slot. Short and long work alternate where
// both wait.
func (f *folder) next() (next reconcile.Request, long, found bool) {
	mayShort := !f.short.isEmpty() && f.hasSlot(false)
	mayLong := !f.longer.isEmpty() && f.hasSlot(true)
	switch {
	case mayLong && (f.longNext || !mayShort):
		f.longNext = false
		return f.longer.next(), true, true
	case mayShort:
		f.longNext = true
		return f.short.next(), false, true
	default:
		return next, false, false
	}
}
