package backlog

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// there is how a controller's handler adds an object that is there at the start.
var there = priorityqueue.AddOpts{Priority: new(handler.LowPriority)}

func newQueue(t *testing.T) *workQueue[int] {
	t.Helper()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Millisecond, time.Second)
	made := NewQueue("", limiter).(*workQueue[int])
	t.Cleanup(func() {
		if !made.ShuttingDown() {
			made.ShutDown()
		}
	})
	return made
}

func upTo(n int) (items []int) {
	for i := range n {
		items = append(items, i)
	}
	return items
}

// drain takes items until none is left.
func drain(w *workQueue[int]) (items []int) {
	for w.Len() > 0 {
		item, _ := w.Get()
		w.Done(item)
		items = append(items, item)
	}
	return items
}

func TestObjectsThatAreThereAtTheStartAreHandedOutOnceInTheirOrder(t *testing.T) {
	w := newQueue(t)
	w.AddWithOpts(there, upTo(5000)...)
	for _, item := range upTo(5000)[maxReady:] {
		w.AddWithOpts(there, item)
	}
	if got := drain(w); !slices.Equal(got, upTo(5000)) {
		t.Errorf("%d items are handed out, in another order", len(got))
	}
}

func TestAWorkQueueHasFewOfThemInItsMapsAndForgetsTheRest(t *testing.T) {
	w := newQueue(t)
	w.AddWithOpts(there, upTo(5000)...)
	for w.Len() > 0 {
		if ready := w.PriorityQueue.Len(); ready > maxReady {
			t.Fatalf("%d are in its maps", ready)
		}
		item, _ := w.Get()
		w.Done(item)
	}
	if w.order != nil || w.waiting != nil {
		t.Errorf("it keeps memory of %d and %d items", cap(w.order), len(w.waiting))
	}
}

func TestWhatHappensNowComesBeforeObjectsThatWereThere(t *testing.T) {
	w := newQueue(t)
	w.AddWithOpts(there, upTo(1000)...)
	w.Add(-1)
	if item, priority, _ := w.GetWithPriority(); item != -1 || priority != 0 {
		t.Errorf("%d comes first, of priority %d", item, priority)
	}
}

func TestWhatHasATimeDoesNotWaitBehindOthers(t *testing.T) {
	for name, opts := range map[string]priorityqueue.AddOpts{
		"a later look":           {Priority: there.Priority, After: time.Hour},
		"a retry":                {Priority: there.Priority, RateLimited: true},
		"an object of its own":   {},
		"one that comes earlier": {Priority: new(handler.LowPriority / 2)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newQueue(t)
			w.AddWithOpts(there, upTo(1000)...)
			w.AddWithOpts(opts, -1)
			if slices.Contains(w.order, -1) {
				t.Error("it waits")
			}
		})
	}
}

func TestEachItemIsHandedOutWhileWorkersAndInformersRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, informers, each = 8, 4, 1000
		w := newQueue(t)
		var seen sync.Map
		var working, adding sync.WaitGroup
		for range workers {
			working.Go(func() {
				for item, shutdown := w.Get(); !shutdown; item, shutdown = w.Get() {
					seen.Store(item, true)
					w.Done(item)
				}
			})
		}
		for informer := range informers {
			adding.Go(func() {
				for i := range each {
					w.AddWithOpts(there, informer*each+i)
					if i%100 == 0 {
						w.Add(-1 - i)
					}
				}
			})
		}
		adding.Wait()
		synctest.Wait()
		w.ShutDown()
		working.Wait()
		for _, item := range upTo(informers * each) {
			if _, found := seen.Load(item); !found {
				t.Fatalf("item %d is not handed out", item)
			}
		}
	})
}

func TestAWorkerEndsWithTheQueueThoughItemsWait(t *testing.T) {
	w := newQueue(t)
	w.AddWithOpts(there, upTo(1000)...)
	w.ShutDown()
	if _, shutdown := w.Get(); !shutdown {
		t.Error("it goes on")
	}
}
