package operations

import (
	"slices"
	"time"

	"k8s.io/utils/clock"
)

const (
	// LanePlaces is how many operations of one volume type begin at once. Each may keep
	// a thread in the kernel, and many pods may come at the same time.
	LanePlaces = 32
	// PlaceLoan is how long an operation has its place. One that takes longer waits for a
	// disk or a server: it runs on without a place, and others begin.
	PlaceLoan = time.Second
	// LaneLimit is how many operations of one volume type run at once in all, so that
	// those that hang don't become more and more.
	LaneLimit = 256
)

// lane is the operations of one volume type, each of which has one of its own, so that
// whatever hangs in one type keeps no other one from anything.
//
// Within a type, a place is only lent: servers and devices hang one by one, and the
// volumes of one that answers mustn't wait for one that doesn't. What hangs is bounded
// by LaneLimit, and by how many volumes of the type the node's pods have.
type lane struct {
	volumeType string
	waiting    []*operation
	// lent is how many have a place, and running how many run.
	lent, running int
}

// loan is a place in a lane, for a time.
type loan struct {
	lane  *lane
	timer clock.Timer
	over  bool
}

func (l *lane) hasRoom() bool { return l.lent < LanePlaces && l.running < LaneLimit }

// laneOf is the lane of a volume type.
func (o *Operations) laneOf(volumeType string) *lane {
	at, known := o.lanes[volumeType]
	if !known {
		at = &lane{volumeType: volumeType}
		o.lanes[volumeType] = at
	}
	return at
}

// enqueue lets an operation begin, at once or in its turn.
func (o *Operations) enqueue(state *operation) {
	at := o.laneOf(state.Type)
	state.phase, state.since = queued, o.clock.Now()
	at.waiting = append(at.waiting, state)
	o.fill(at)
}

// drop takes away an operation that waits for its turn.
func (o *Operations) drop(state *operation) {
	at := o.laneOf(state.Type)
	at.waiting = slices.DeleteFunc(at.waiting, func(other *operation) bool { return other == state })
	o.numbers.SetQueued(at.volumeType, len(at.waiting))
	state.cancel()
	state.release()
	delete(o.states, state.Dir)
}

// fill begins what waits, the first first, as far as there is room.
func (o *Operations) fill(at *lane) {
	for len(at.waiting) > 0 && at.hasRoom() {
		next := at.waiting[0]
		at.waiting = slices.Delete(at.waiting, 0, 1)
		o.begin(at, next)
	}
	o.numbers.SetQueued(at.volumeType, len(at.waiting))
}

// begin runs an operation in a goroutine of its own.
func (o *Operations) begin(at *lane, state *operation) {
	at.lent, at.running = at.lent+1, at.running+1
	state.phase, state.since, state.loan = running, o.clock.Now(), &loan{lane: at}
	lent := state.loan
	// In a goroutine of its own: a clock that is only tried is locked while it calls.
	lent.timer = o.clock.AfterFunc(PlaceLoan, func() { go o.endLoan(lent) })
	state.ended = o.numbers.Begin(state.Type, state.Kind)
	work := state.work
	o.wait.Go(func() { o.end(state, work())(state.Pod) })
}

// endLoan gives the place of an operation that takes long to the next.
func (o *Operations) endLoan(lent *loan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !lent.over {
		lent.over = true
		lent.lane.lent--
		o.fill(lent.lane)
	}
}

// leave ends what an operation that is over had of its lane.
func (o *Operations) leave(lent *loan) {
	lent.timer.Stop()
	if !lent.over {
		lent.over = true
		lent.lane.lent--
	}
	lent.lane.running--
	o.fill(lent.lane)
}
