// Package leadership has the lease by which one of several managers acts, and knows how long no other one will.
//
// A manager that was paused may lead no more, and not know it yet. Whatever it reads live tells it so at the time of the read. The
// lease tells it without a read: no other manager acts before the lease ends.
package leadership

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

const (
	// Margin is how much of a lease has to be left. It is for what comes between a look at the lease and the end of what depends on it.
	Margin = 5 * time.Second
	// renewDeadline is that of controller-runtime's manager, unless it is set.
	renewDeadline = 10 * time.Second
)

// Lease is the lock of a leader election. It is safe for concurrent use.
type Lease struct {
	resourcelock.Interface
	clock  clock.PassiveClock
	events *lateEvents

	mu sync.Mutex
	// renewed is when the last renewal was sent. Zero: it failed, or the lease was given up.
	renewed  time.Time
	duration time.Duration
	term     Term
}

// Term is a time in which one manager led, and no other one in between. Its value has no meaning.
type Term string

// New returns the lease with a name in a namespace, which is this pod's own where it is empty. It isn't held.
func New(config *rest.Config, namespace, name string) (*Lease, error) {
	events := &lateEvents{}
	lock, err := leaderelection.NewResourceLock(rest.CopyConfig(config), events, leaderelection.Options{
		LeaderElection: true, LeaderElectionID: name, LeaderElectionNamespace: namespace, RenewDeadline: renewDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("making the lock of lease %s: %w", name, err)
	}
	return &Lease{Interface: lock, clock: clock.RealClock{}, events: events}, nil
}

// Over returns a lease over a lock that exists. It isn't held.
func Over(lock resourcelock.Interface, clock clock.PassiveClock) *Lease {
	return &Lease{Interface: lock, clock: clock, events: &lateEvents{}}
}

// IsHeld reports whether this process leads, and no other one will before Margin has passed. The clock on the wall counts, too:
// the other one stops while a machine is suspended. A nil lease is never held.
//
// It depends on all managers' clocks going equally fast, as the election itself does. It is wrong if a person deletes the Lease
// object, until the next renewal, two seconds later.
func (l *Lease) IsHeld() bool {
	_, held := l.Term()
	return held
}

// Term returns the term of the last renewal, and whether the lease is held. Where it is held in the term of an earlier look, no other
// manager led since: one that did leaves its mark in the lease, even if it gave it up again.
func (l *Lease) Term() (term Term, held bool) {
	if l == nil {
		return "", false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	return l.term, !l.renewed.IsZero() && l.lasts(now.Sub(l.renewed)) && l.lasts(now.Round(0).Sub(l.renewed.Round(0)))
}

func (l *Lease) lasts(passed time.Duration) bool { return passed >= 0 && passed <= l.duration-Margin }

// Create implements resourcelock.Interface.
func (l *Lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *Lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Update(ctx, record) })
}

// write notes a renewal once it succeeded. Others count from when they see it, which is later than when it was sent. The lease isn't
// held from before it is given up.
func (l *Lease) write(record resourcelock.LeaderElectionRecord, write func() error) error {
	began := l.clock.Now()
	if record.HolderIdentity != l.Identity() {
		l.note(time.Time{}, record)
		return write()
	}
	err := write()
	if err != nil {
		began = time.Time{}
	}
	l.note(began, record)
	return err
}

func (l *Lease) note(renewed time.Time, record resourcelock.LeaderElectionRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.duration = renewed, time.Duration(record.LeaseDurationSeconds)*time.Second
	// A renewal has both as they were. They begin again with a Lease object that is created again.
	l.term = Term(fmt.Sprint(record.AcquireTime.Unix(), " ", record.LeaderTransitions))
}

// recorders is a manager, as far as events need it.
type recorders interface {
	GetEventRecorderFor(name string) record.EventRecorder
}

// RecordWith has events about the lease recorded by a manager. It comes before that manager starts. A nil lease has none.
func (l *Lease) RecordWith(manager recorders) {
	if l == nil {
		return
	}
	l.events.EventRecorder = manager.GetEventRecorderFor(l.Identity()) //nolint:forbidigo // a lock knows no other kind of recorder
}

// lateEvents is the recorder of a lock that is made before its manager.
type lateEvents struct{ record.EventRecorder }

// GetEventRecorderFor implements recorder.Provider.
func (e *lateEvents) GetEventRecorderFor(string) record.EventRecorder { return e }

// GetEventRecorder implements recorder.Provider. A lock's events are of the older kind.
func (e *lateEvents) GetEventRecorder(string) recorder.EventRecorder { return nil }
