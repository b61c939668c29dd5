package leadership_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/leadership"
)

// lock is one that a test decides about.
type lock struct {
	resourcelock.Interface
	// then runs while a write is under way, and fails it.
	then func() error
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.then() }

func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.then() }

func succeeds() error { return nil }

// renewal is a record of a lease of fifteen seconds.
func renewal(holder string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15}
}

func TestALeaseIsHeldUntilFiveSecondsBeforeItsEnd(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	lease := leadership.Over(&lock{then: succeeds}, clock)
	if lease.IsHeld() {
		t.Error("it is held before it was acquired")
	}
	if err := lease.Create(t.Context(), renewal("me")); err != nil {
		t.Fatal(err)
	}
	acquired := clock.Now()
	for after, held := range map[time.Duration]bool{-1: false, 0: true, 10 * time.Second: true, 10*time.Second + 1: false} {
		clock.SetTime(acquired.Add(after))
		if is := lease.IsHeld(); is != held {
			t.Errorf("after %s it is held is %t", after, is)
		}
	}
	clock.SetTime(acquired.Add(time.Minute))
	if err := lease.Update(t.Context(), renewal("me")); err != nil {
		t.Fatal(err)
	}
	if !lease.IsHeld() {
		t.Error("it isn't held once it was renewed")
	}
}

func TestALeaseCountsFromWhenItsRenewalWasSent(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	lease := leadership.Over(&lock{then: func() error {
		clock.SetTime(clock.Now().Add(11 * time.Second))
		return nil
	}}, clock)
	_ = lease.Update(t.Context(), renewal("me"))
	if lease.IsHeld() {
		t.Error("it is held, though the answer came after eleven seconds")
	}
}

func TestALeaseThatMayBeLostIsNotHeld(t *testing.T) {
	failure := errors.New("the lease was changed by another")
	lost := &lock{then: succeeds}
	lease := leadership.Over(lost, clocktesting.NewFakePassiveClock(time.Now()))
	_ = lease.Update(t.Context(), renewal("me"))
	lost.then = func() error { return failure }
	if err := lease.Update(t.Context(), renewal("me")); !errors.Is(err, failure) {
		t.Errorf("the renewal ends with %v", err)
	}
	if lease.IsHeld() {
		t.Error("it is held")
	}
}

func TestALeaseIsNotHeldWhileItIsGivenUp(t *testing.T) {
	given := &lock{then: succeeds}
	lease := leadership.Over(given, clocktesting.NewFakePassiveClock(time.Now()))
	_ = lease.Update(t.Context(), renewal("me"))
	held := true
	given.then = func() error {
		held = lease.IsHeld()
		return nil
	}
	_ = lease.Update(t.Context(), renewal(""))
	if held || lease.IsHeld() {
		t.Errorf("during the write it is held is %t, after it %t", held, lease.IsHeld())
	}
}

func TestNoLeaseIsNeverHeld(t *testing.T) {
	var none *leadership.Lease
	if none.IsHeld() {
		t.Error("it is held")
	}
}

func TestATermLastsUntilTheLeaseIsAcquiredAgain(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	lease := leadership.Over(&lock{then: succeeds}, clock)
	acquired := renewal("me")
	acquired.AcquireTime = metav1.NewTime(clock.Now())
	_ = lease.Create(t.Context(), acquired)
	first, held := lease.Term()
	if !held {
		t.Error("it isn't held")
	}
	_ = lease.Update(t.Context(), acquired)
	if again, held := lease.Term(); !held || again != first {
		t.Errorf("a renewal has it in term %q, not %q; held: %t", again, first, held)
	}
	for what, change := range map[string]func(*resourcelock.LeaderElectionRecord){
		"another process had it": func(record *resourcelock.LeaderElectionRecord) { record.LeaderTransitions++ },
		"its object was created again": func(record *resourcelock.LeaderElectionRecord) {
			record.AcquireTime.Time = clock.Now().Add(time.Minute)
		},
	} {
		record := acquired
		change(&record)
		_ = lease.Update(t.Context(), record)
		if later, held := lease.Term(); !held || later == first {
			t.Errorf("after %s it is in term %q; held: %t", what, later, held)
		}
	}
	_ = lease.Update(t.Context(), renewal(""))
	if _, held := lease.Term(); held {
		t.Error("it is held after it was given up")
	}
	if _, held := (*leadership.Lease)(nil).Term(); held {
		t.Error("a lease that isn't there is held")
	}
}

// The lock's own requests have a timeout of five seconds. A manager's lists may take longer, and its watches last.
func TestTheConfigOfTheProgramStaysAsItIs(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	if _, err := leadership.New(config, "default", "manager"); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != 0 || config.UserAgent != "" {
		t.Errorf("its timeout is %s, and its user agent %q", config.Timeout, config.UserAgent)
	}
}
