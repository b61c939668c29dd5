package gce

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// from makes a fault in the nth call, and all later calls are lost: the manager crashed, or the
// network. It counts the calls.
func from(nth int, becomes fate) (plan func(*http.Request) fate, count func() int) {
	var mu sync.Mutex
	seen := 0
	plan = func(*http.Request) fate {
		mu.Lock()
		defer mu.Unlock()
		seen++
		switch {
		case seen < nth:
			return served
		case seen == nth:
			return becomes
		default:
			return dropped
		}
	}
	return plan, func() int {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// TestACallInterruptedAnywhereIsResumed cuts a call off before its first request, after
// it, before its second, and so on, until it is through. Another manager makes it good.
func TestACallInterruptedAnywhereIsResumed(t *testing.T) {
	inEachPlace(t, func(t *testing.T, replicated bool) {
		for name, each := range calls {
			interruptAnywhere(t, name, each, replicated)
		}
	})
}

// inEachPlace runs a test with disks of zones, and with replicated ones.
func inEachPlace(t *testing.T, test func(t *testing.T, replicated bool)) {
	for name, replicated := range map[string]bool{"in a zone": false, "replicated": true} {
		t.Run(name, func(t *testing.T) { test(t, replicated) })
	}
}

func interruptAnywhere(t *testing.T, name string, each interruptible, replicated bool) {
	for when, becomes := range map[string]fate{"before": dropped, "after": unanswered} {
		t.Run(name+" "+when, func(t *testing.T) {
			through := false
			for nth := 1; !through; nth++ {
				w := newWorld(t)
				w.replicated = replicated
				each.prepare(w, w.open())
				before := w.begun(name)
				plan, count := from(nth, becomes)
				w.plans(plan)
				err := each.call(w, w.open())
				through = err == nil && count() < nth
				w.plans(nil)
				fresh := w.openAs(w.newKind(thisCluster), "cloud")
				w.must(w.untilFinal(func() error { return each.call(w, fresh) }))
				if begun := w.begun(name) - before; begun != 1 {
					t.Errorf("cut off at request %d: there were %d operations", nth, begun)
				}
				w.checkOutcome(fmt.Sprintf("%s, cut off at request %d", name, nth), name)
				if nth > 30 {
					t.Fatal("it takes more requests than it should")
				}
			}
		})
	}
}

func (w *world) checkOutcome(when, name string) {
	w.Helper()
	switch name {
	case "Delete":
		if w.has("pvc-1") {
			w.Errorf("%s: the disk is there", when)
		}
		return
	case "Restore", "Clone":
		if made := w.mustHaveOne("pvc-2"); name == "Restore" != (cloud.PathOf(made.SourceSnapshot) == handleOfA) || name == "Clone" != (cloud.NameOf(made.SourceDisk) == "pvc-1") {
			w.Errorf("%s: the disk is %+v", when, made)
		}
	case "CreateImage", "DeleteImage":
		if there := len(w.images()); name == "CreateImage" != (there == 1) {
			w.Errorf("%s: there are %d images", when, there)
		}
	case "CreateSnapshot", "DeleteSnapshot":
		if there := len(w.snapshots()); name == "CreateSnapshot" != (there == 1) {
			w.Errorf("%s: there are %d snapshots", when, there)
		}
	}
	disk := w.mustHaveOne("pvc-1")
	if name == "Expand" != (disk.SizeGb == 20) || name == "Retain" != (disk.Labels["stowage-retained"] == "true") ||
		name == "Attach" != (len(disk.Users) == 1) || name == "Modify" != (disk.ProvisionedIops == 4000) {
		w.Errorf("%s: the disk is %+v", when, disk)
	}
}

// TestAProvisionInterruptedAnywhereIsUndone does what the reconcilers do: it repeats the
// call until its outcome is known, and removes what there is then.
func TestAProvisionInterruptedAnywhereIsUndone(t *testing.T) {
	inEachPlace(t, undoAnywhere)
}

func undoAnywhere(t *testing.T, replicated bool) {
	each := calls["Provision"]
	for when, becomes := range map[string]fate{"before": dropped, "after": unanswered} {
		t.Run(when, func(t *testing.T) {
			through := false
			for nth := 1; !through; nth++ {
				w := newWorld(t)
				w.replicated = replicated
				plan, count := from(nth, becomes)
				w.plans(plan)
				err := each.call(w, w.open())
				through = err == nil && count() < nth
				w.plans(nil)
				fresh := w.openAs(w.newKind(thisCluster), "cloud")
				_ = w.untilFinal(func() error {
					if err := each.call(w, fresh); backend.KindOf(err) == "" && err != nil {
						return backend.InProgress.Errorf("unknown: %w", err)
					}
					return nil
				})
				w.must(w.untilFinal(func() error { return fresh.Delete(t.Context(), "pvc-1") }))
				if w.has("pvc-1") {
					t.Errorf("cut off at request %d: there is a disk", nth)
				}
			}
		})
	}
}
