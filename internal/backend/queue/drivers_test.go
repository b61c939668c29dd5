package queue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

const (
	manyDrivers, claimsEach = 10, 1000
	callsAtOnce             = 10
	callTakes               = 100 * time.Millisecond
	// rest is a time after which answers and slots are dropped that no caller came for.
	rest = 10 * time.Minute
	// maxWaiting bounds what a claim that waits costs, and maxLeft what ten thousand more leave behind, in bytes.
	maxWaiting, maxLeft = 4 << 10, 256 << 10
)

// claimAll provisions the volumes of a driver as reconcilers do: each comes again when it is woken. It
// returns how long that took.
func claimAll(q *queue.Queue, driver int, storage *fake.Backend) time.Duration {
	target, began := queue.Target{Name: fmt.Sprint("driver ", driver), Limit: callsAtOnce}, time.Now()
	var waiting sync.WaitGroup
	for claim := range claimsEach {
		waiting.Go(func() {
			woken := make(chan struct{}, 1)
			served := q.Serve(target, storage, func() {
				select {
				case woken <- struct{}{}:
				default:
				}
			})
			for {
				_, err := served.Provision(context.Background(), backendtest.Request(fmt.Sprint(driver, "-", claim)))
				if !errors.Is(err, backend.Queued) {
					return
				}
				<-woken
			}
		})
	}
	waiting.Wait()
	return time.Since(began)
}

// claimOfMany returns how long the claims of each driver took, and what each claim that waited cost. The
// last driver may hang until all others are done.
func claimOfMany(q *queue.Queue, hangs bool) (took [manyDrivers]time.Duration, perClaim int) {
	var others, last sync.WaitGroup
	before, release := heap(), func() {}
	for driver := range manyDrivers {
		storage, group := fake.New(), &others
		storage.SetLatency(callTakes)
		if driver == manyDrivers-1 {
			group = &last
			if hangs {
				release = storage.Hold()
			}
		}
		group.Go(func() { took[driver] = claimAll(q, driver, storage) })
	}
	<-time.After(callTakes / 2)
	perClaim = (heap() - before) / (manyDrivers * claimsEach)
	others.Wait()
	release()
	last.Wait()
	return took, perClaim
}

func heap() int {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int(memory.HeapAlloc)
}

func TestOfTenDriversWithAThousandClaimsOneThatHangsSlowsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(t.Context(), nil)
		without, _ := claimOfMany(q, false)
		<-time.After(rest)
		before := heap()
		beside, perClaim := claimOfMany(q, true)
		for driver := range manyDrivers - 1 {
			if want := claimsEach / callsAtOnce * callTakes; without[driver] != want || beside[driver] != want {
				t.Errorf("the claims of driver %d took %s, and %s beside one that hangs, not %s", driver, without[driver], beside[driver], want)
			}
		}
		if hung := beside[manyDrivers-1]; hung <= claimsEach/callsAtOnce*callTakes {
			t.Errorf("the claims of the driver that hangs took %s", hung)
		}
		<-time.After(rest)
		left := heap() - before
		runtime.KeepAlive(q)
		t.Logf("a claim that waits costs %d bytes, and ten thousand leave %d", perClaim, left)
		if perClaim > maxWaiting || left > maxLeft {
			t.Errorf("a claim that waits costs %d bytes, and ten thousand leave %d", perClaim, left)
		}
	})
}
