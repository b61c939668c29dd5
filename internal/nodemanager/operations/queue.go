package operations

import (
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
)

const (
	// Slots is how many operations of one volume type begin at once. Each may keep a thread in
	// the kernel, and many pods may be created together.
	Slots = 32
	// SlotTime is how long an operation has its slot. A longer one waits for a disk or a server:
	// it runs on without a slot, and others begin.
	SlotTime = time.Second
	// MaxRunning is how many operations of one volume type run at once, with or without a slot.
	// It bounds those that hang.
	MaxRunning = 256
)

// queues are the queued operations. Each volume type has its own queue, so that a type that
// hangs delays no other.
//
// Servers and devices hang one by one. Within a type, a slot is held for a limited time, so that one
// that hangs doesn't delay the volumes of those that answer.
type queues struct {
	// lock is held by all callers, and taken when a slot's time ends.
	lock    sync.Locker
	clock   clock.WithDelayedExecution
	metrics *metrics.Metrics
	running sync.WaitGroup
	of      map[string]*queue
}

// queue is the operations of one volume type.
type queue struct {
	volumeType string
	waiting    []*operation
	// slots is how many hold a slot, and running how many run.
	slots, running int
}

// slot is one that an operation holds for a time.
type slot struct {
	queue *queue
	timer clock.Timer
	freed bool
}

func (q *queue) hasRoom() bool { return q.slots < Slots && q.running < MaxRunning }

func (q *queues) ofType(volumeType string) *queue {
	at, known := q.of[volumeType]
	if !known {
		at = &queue{volumeType: volumeType}
		q.of[volumeType] = at
	}
	return at
}

// add queues an operation, and begins it if there is room.
func (q *queues) add(state *operation) {
	at := q.ofType(state.Type)
	state.phase, state.since = queued, q.clock.Now()
	at.waiting = append(at.waiting, state)
	q.fill(at)
}

// remove takes out an operation that hasn't begun.
func (q *queues) remove(state *operation) {
	at := q.ofType(state.Type)
	at.waiting = slices.DeleteFunc(at.waiting, func(other *operation) bool { return other == state })
	q.metrics.SetQueued(at.volumeType, len(at.waiting))
}

// fill begins operations in their order, while there is room.
func (q *queues) fill(at *queue) {
	for len(at.waiting) > 0 && at.hasRoom() {
		next := at.waiting[0]
		at.waiting = slices.Delete(at.waiting, 0, 1)
		q.begin(at, next)
	}
	q.metrics.SetQueued(at.volumeType, len(at.waiting))
}

// begin runs an operation in a goroutine of its own.
func (q *queues) begin(at *queue, state *operation) {
	at.slots, at.running = at.slots+1, at.running+1
	held := &slot{queue: at}
	// In a goroutine of its own: a fake clock is locked during the call.
	held.timer = q.clock.AfterFunc(SlotTime, func() { go q.expire(held) })
	state.phase, state.since, state.leave = running, q.clock.Now(), func() { q.leave(held) }
	state.ended = q.metrics.Begin(state.Type, state.Kind)
	q.running.Go(state.work)
}

// expire frees the slot of an operation that takes long.
func (q *queues) expire(held *slot) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.free(held)
	q.fill(held.queue)
}

// leave is called once an operation is over.
func (q *queues) leave(held *slot) {
	held.timer.Stop()
	q.free(held)
	held.queue.running--
	q.fill(held.queue)
}

func (*queues) free(held *slot) {
	if !held.freed {
		held.freed = true
		held.queue.slots--
	}
}
