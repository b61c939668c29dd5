package keyed

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestAKeyHasOneHolder(t *testing.T) {
	var locks Locks
	release, acquired := locks.TryAcquire("a")
	if !acquired {
		t.Fatal("a free key wasn't given")
	}
	if _, acquired := locks.TryAcquire("a"); acquired {
		t.Error("a key was given twice")
	}
	if _, acquired := locks.TryAcquire("b"); !acquired {
		t.Error("another key wasn't given")
	}
	release()
	again, err := locks.Acquire(t.Context(), "a")
	if err != nil {
		t.Error("a released key wasn't given")
	}
	release()
	if _, acquired := locks.TryAcquire("a"); acquired {
		t.Error("releasing twice took the key from the next holder")
	}
	again()
}

func TestACallWaitsForItsKeyAloneAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks Locks
		var order []int
		var mu sync.Mutex
		release, _ := locks.Acquire(t.Context(), "slow")
		for i := range 3 {
			go func() {
				end, err := locks.Acquire(t.Context(), "slow")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				end()
			}()
			synctest.Wait()
		}
		if other, err := locks.Acquire(t.Context(), "quick"); err != nil {
			t.Error(err)
		} else {
			other()
		}
		release()
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("the key was given in the order %v", order)
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks Locks
		unwanted := errors.New("unwanted")
		release, _ := locks.Acquire(t.Context(), "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		var err error
		go func() { _, err = locks.Acquire(ctx, "a") }()
		synctest.Wait()
		cancel(unwanted)
		synctest.Wait()
		if !errors.Is(err, unwanted) {
			t.Errorf("got %v", err)
		}
		release()
		if end, err := locks.Acquire(ctx, "a"); err != nil {
			t.Errorf("a free key wasn't given: %v", err)
		} else {
			end()
		}
	})
}

func TestKeysThatAreNotUsedTakeNoMemory(t *testing.T) {
	for name, use := range map[string]func(*Locks){
		"held": func(locks *Locks) {
			release, _ := locks.Acquire(t.Context(), "a")
			release()
		},
		"refused": func(locks *Locks) {
			release, _ := locks.TryAcquire("a")
			locks.TryAcquire("a")
			release()
		},
		"given up": func(locks *Locks) {
			release, _ := locks.Acquire(t.Context(), "a")
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := locks.Acquire(ended, "a"); err == nil {
				t.Error("a held key was given")
			}
			release()
		},
	} {
		var locks Locks
		use(&locks)
		if len(locks.used) > 0 {
			t.Errorf("after a key was %s, it takes up memory", name)
		}
	}
}
