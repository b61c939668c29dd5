package gce

import (
	"cmp"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

// interruptible is a call that changes something, and what there is before it.
type interruptible struct {
	method  string
	prepare func(*world, *gceBackend)
	call    func(*world, *gceBackend) error
}

// calls are those of a backend that change something, each with the method that does it,
// on a world where it is possible.
var calls = map[string]interruptible{
	"Provision": {
		"disks.insert", func(*world, *gceBackend) {},
		func(w *world, on *gceBackend) error {
			request := backendtest.Request("1")
			request.Node = nodeNamed("node-1", zoneA)
			_, err := on.Provision(w.Context(), request)
			return err
		},
	},
	"Expand": {"disks.resize", withVolume, func(w *world, on *gceBackend) error {
		_, err := on.Expand(w.Context(), backend.ExpandRequest{ID: "pvc-1", Capacity: resource.MustParse("20Gi")})
		return err
	}},
	"Modify": {"disks.update", func(w *world, _ *gceBackend) { w.mustProvision(w.open(w.tunable), ofClass("1", nil)) }, func(w *world, on *gceBackend) error {
		return on.Modify(w.Context(), "pvc-1", iops("4000"))
	}},
	"Retain": {"disks.setLabels", withVolume, func(w *world, on *gceBackend) error {
		_, err := on.Retain(w.Context(), "pvc-1")
		return err
	}},
	"Delete": {"disks.delete", withVolume, func(w *world, on *gceBackend) error { return on.Delete(w.Context(), "pvc-1") }},
	"Restore": {"disks.insert", withSnapshot, func(w *world, on *gceBackend) error {
		_, err := on.Provision(w.Context(), w.restoring("2"))
		return err
	}},
	"Clone": {"disks.insert", withVolume, func(w *world, on *gceBackend) error {
		request := copying("2")
		request.Node = nodeNamed("node-1", zoneA)
		_, err := on.Provision(w.Context(), request)
		return err
	}},
	"CreateSnapshot": {"disks.createSnapshot", withVolume, func(w *world, on *gceBackend) error {
		return w.snapshot(on)
	}},
	"CreateImage": {"images.insert", withVolume, func(w *world, on *gceBackend) error { return w.image(on) }},
	"DeleteImage": {"images.delete", withImage, func(w *world, on *gceBackend) error {
		return on.DeleteSnapshot(w.Context(), handleOfImage)
	}},
	"DeleteSnapshot": {"snapshots.delete", withSnapshot, func(w *world, on *gceBackend) error {
		return on.DeleteSnapshot(w.Context(), handleOfA)
	}},
	"Attach": {"instances.attachDisk", withVolume, func(w *world, on *gceBackend) error {
		_, err := on.Attach(w.Context(), backend.AttachRequest{ID: "pvc-1", Node: node("node-1")})
		return err
	}},
	"Detach": {"instances.detachDisk", func(w *world, on *gceBackend) {
		withVolume(w, on)
		w.mustAttach(on, "pvc-1", node("node-1"), false)
	}, func(w *world, on *gceBackend) error { return on.Detach(w.Context(), "pvc-1", node("node-1")) }},
}

// operationTypes are what the operations of those calls call themselves.
var operationTypes = map[string]string{
	"Provision": "insert", "Expand": "resizeDisk", "Modify": "update", "Retain": "setLabels", "Delete": "delete", "Attach": "attachDisk", "Detach": "detachDisk",
	"Restore": "insert", "Clone": "insert", "CreateSnapshot": "createSnapshot", "DeleteSnapshot": "delete",
	"CreateImage": "insert", "DeleteImage": "delete",
}

// tunable has disks of a type whose performance can change.
func (w *world) tunable(spec *stowagev1alpha1.GCEBackend) {
	spec.DiskType = extreme
	if w.replicated {
		spec.DiskType = replicatedHyperdisk
	}
}

// begun counts the operations of those calls. Those on snapshots and images alone are in no zone.
func (w *world) begun(name string) int {
	w.Helper()
	if name == "DeleteSnapshot" || name == "CreateImage" || name == "DeleteImage" {
		return w.operations("", operationTypes[name])
	}
	return w.operations(zoneA, operationTypes[name]) + w.operationsIn(place.RegionOf(zoneA), operationTypes[name])
}

func withVolume(w *world, on *gceBackend) { w.withDisk(on, "1") }

// withEach runs a test for each of the calls, in a world of its own.
func withEach(t *testing.T, test func(t *testing.T, w *world, name string, call func(*gceBackend) error)) {
	for name, each := range calls {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			each.prepare(w, w.open())
			test(t, w, name, func(on *gceBackend) error { return each.call(w, on) })
		})
	}
}

func TestARefusalHasItsKindAndARepeatSucceeds(t *testing.T) {
	for name, test := range map[string]struct {
		fault gcemock.Fault
		kind  backend.ErrorKind
		says  string
	}{
		"too many calls":         {gcemock.Fault{Status: http.StatusTooManyRequests}, backend.Unavailable, "too many calls for project demo"},
		"too many of a user":     {gcemock.Fault{Status: http.StatusForbidden, Reason: "userRateLimitExceeded"}, backend.Unavailable, "too many calls"},
		"not there for a while":  {gcemock.Fault{Status: http.StatusServiceUnavailable}, backend.Unavailable, "isn't ready"},
		"a quota":                {gcemock.Fault{Status: http.StatusForbidden}, backend.Exhausted, "a quota of project demo is used up"},
		"not allowed":            {gcemock.Fault{Status: http.StatusForbidden, Reason: "forbidden"}, backend.Unavailable, "grant the roles"},
		"not allowed, of a kind": {gcemock.Fault{Status: http.StatusForbidden, Reason: "insufficientPermissions"}, backend.Unavailable, "grant the roles"},
		"a forbidden of no kind": {gcemock.Fault{Status: http.StatusForbidden, Reason: "somethingNew"}, backend.Unavailable, "grant the roles"},
		"the API is off":         {gcemock.Fault{Status: http.StatusForbidden, Reason: "accessNotConfigured"}, backend.Unavailable, "switch the Compute Engine API on"},
		"not known":              {gcemock.Fault{Status: http.StatusUnauthorized}, backend.Unavailable, "isn't accepted: renew it"},
		"an error of the inside": {gcemock.Fault{Status: http.StatusInternalServerError}, "", "may have taken effect"},
		"a gateway that fails":   {gcemock.Fault{Status: http.StatusBadGateway, Reason: "somethingNew"}, "", "may have taken effect"},
		"an error of the back":   {gcemock.Fault{Status: http.StatusInternalServerError, Reason: "backendError"}, "", "may have taken effect"},
	} {
		t.Run(name, func(t *testing.T) {
			withEach(t, func(_ *testing.T, w *world, name string, call func(*gceBackend) error) {
				test.fault.Method, test.fault.Count = calls[name].method, 1
				w.inject(test.fault)
				w.mustBe(call(w.open()), refusedBy(name, test.kind), test.says)
				w.must(w.untilFinal(func() error { return call(w.open()) }))
			})
		})
	}
}

// unlike are the calls for which an operation's error means something else: labels are set
// by fingerprint, and an attachment that has to wait is no news before it has waited.
var unlike = map[string]backend.ErrorKind{
	"Retain CONDITION_NOT_MET":  backend.InProgress,
	"Attach RESOURCE_NOT_READY": backend.NotReady,
	"Detach RESOURCE_NOT_READY": backend.NotReady,
}

// refusedBy is the kind of the error of a call that the cloud refused for want of room or quota.
func refusedBy(call string, kind backend.ErrorKind) backend.ErrorKind {
	if call == "Modify" && kind == backend.Exhausted {
		return backend.NotReady // nothing goes on, and the claim may name another class
	}
	return kind
}

// failedBy is the kind of the error of an operation that ended in error.
func failedBy(call string, kind backend.ErrorKind) backend.ErrorKind {
	if call == "Modify" && kind == backend.Unavailable {
		return backend.NotReady
	}
	return refusedBy(call, kind)
}

func TestARefusedAttachIsNotInProgress(t *testing.T) {
	for name, test := range map[string]struct {
		fault gcemock.Fault
		kind  backend.ErrorKind
		says  string
	}{
		"a constraint":          {gcemock.Fault{Status: http.StatusPreconditionFailed, Message: "Constraint constraints/x violated"}, backend.Invalid, "constraints/x"},
		"an absence that isn't": {gcemock.Fault{Status: http.StatusNotFound}, backend.NotReady, "isn't there, and both are"},
		"what isn't ready":      {gcemock.Fault{Status: http.StatusBadRequest, Reason: "resourceNotReady"}, backend.NotReady, "isn't ready"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.open()
			id := w.withDisk(on, "1")
			test.fault.Method = "instances.attachDisk"
			w.inject(test.fault)
			_, err := on.Attach(t.Context(), backend.AttachRequest{ID: id, Node: node("node-1")})
			w.mustBe(err, test.kind, test.says)
			w.removeFaults()
			w.mustAttach(on, id, node("node-1"), false)
		})
	}
}

func TestAConstraintOnNewDisksIsReportedOnTheClaim(t *testing.T) {
	w := newWorld(t)
	w.inject(gcemock.Fault{Method: "disks.insert", Status: http.StatusPreconditionFailed, Message: "Constraint constraints/compute.x violated"})
	_, err := w.provision(w.open(), backendtest.Request("1"))
	w.mustBe(err, backend.Invalid, "constraints/compute.x", "change the policies of project demo")
}

func TestAnOperationThatFailsHasItsKindAndARepeatSucceeds(t *testing.T) {
	for code, kind := range map[string]backend.ErrorKind{
		"QUOTA_EXCEEDED":                            backend.Exhausted,
		"ZONE_RESOURCE_POOL_EXHAUSTED":              backend.Exhausted,
		"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": backend.Exhausted,
		"RESOURCE_OPERATION_RATE_EXCEEDED":          backend.Unavailable,
		"PERMISSIONS_ERROR":                         backend.Unavailable,
		"INTERNAL_ERROR":                            backend.Unavailable,
		"SOMETHING_NEW":                             backend.Unavailable,
		"CONDITION_NOT_MET":                         backend.Invalid,
		"RESOURCE_NOT_READY":                        backend.Unavailable,
	} {
		t.Run(code, func(t *testing.T) {
			withEach(t, func(_ *testing.T, w *world, name string, call func(*gceBackend) error) {
				kind := cmp.Or(unlike[name+" "+code], failedBy(name, kind))
				w.inject(gcemock.Fault{Method: calls[name].method, Count: 1, Operation: code, Message: "no luck"})
				w.mustBe(call(w.open()), kind, "no luck")
				// Also for a manager that knows nothing of the failure.
				w.must(w.untilFinal(func() error { return call(w.openAs(w.newKind(thisCluster), "cloud")) }))
			})
		})
	}
}

func TestManyEarlierFailuresArePassed(t *testing.T) {
	withEach(t, func(t *testing.T, w *world, name string, call func(*gceBackend) error) {
		const failures = 35 // more than one call goes through
		before := w.begun(name)
		w.inject(gcemock.Fault{Method: calls[name].method, Count: failures, Operation: "QUOTA_EXCEEDED"})
		for range failures {
			w.mustBe(call(w.open()), failedBy(name, backend.Exhausted))
		}
		fresh := w.openAs(w.newKind(thisCluster), "cloud")
		for range 2 {
			w.mustBe(call(fresh), failedBy(name, backend.Exhausted))
		}
		w.must(call(fresh))
		if begun := w.begun(name) - before; begun != failures+1 {
			t.Errorf("there were %d operations", begun)
		}
	})
}

func TestAnAnswerThatIsLostIsFoundByARepeat(t *testing.T) {
	withEach(t, func(t *testing.T, w *world, name string, call func(*gceBackend) error) {
		before := w.begun(name)
		w.inject(gcemock.Fault{Method: calls[name].method, Count: 1, Lost: true})
		w.mustBe(call(w.open()), "", "may have taken effect")
		w.must(w.untilFinal(func() error { return call(w.openAs(w.newKind(thisCluster), "cloud")) }))
		if begun := w.begun(name) - before; begun != 1 {
			t.Errorf("there were %d operations", begun)
		}
	})
}

func TestAStuckOperationIsAwaitedByEachCaller(t *testing.T) {
	withEach(t, func(t *testing.T, w *world, name string, call func(*gceBackend) error) {
		before := w.begun(name)
		w.kind.clients.Limits.Operation = 20 * time.Millisecond
		w.inject(gcemock.Fault{Method: calls[name].method, Count: 1, Stuck: true})
		w.mustBe(call(w.open()), backend.InProgress)
		fresh := w.openAs(w.newKind(thisCluster), "cloud")
		fresh.kind.clients.Limits.Operation = 20 * time.Millisecond
		w.mustBe(call(fresh), backend.InProgress)
		w.removeFaults()
		w.must(w.untilFinal(func() error { return call(fresh) }))
		if begun := w.begun(name) - before; begun != 1 {
			t.Errorf("there were %d operations", begun)
		}
	})
}

func TestTwoManagersAtOnceBeginOneOperation(t *testing.T) {
	withEach(t, func(t *testing.T, w *world, name string, call func(*gceBackend) error) {
		before := w.begun(name)
		w.inject(gcemock.Fault{Method: calls[name].method, Delay: gcemock.Duration(50 * time.Millisecond)})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				on := w.openAs(w.newKind(thisCluster), "cloud")
				if err := w.untilFinal(func() error { return call(on) }); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if begun := w.begun(name) - before; begun != 1 {
			t.Errorf("there were %d operations", begun)
		}
	})
}

func TestACloudThatFailsInTheMiddleIsAwaited(t *testing.T) {
	withEach(t, func(t *testing.T, w *world, name string, call func(*gceBackend) error) {
		before := w.begun(name)
		w.inject(gcemock.Fault{Method: calls[name].method, Count: 1, Delay: gcemock.Duration(100 * time.Millisecond)})
		w.inProgressAtOnce()
		on := w.open()
		w.mustBe(call(on), backend.InProgress)
		w.stop()
		w.mustBe(call(on), backend.Unavailable, "doesn't answer")
		w.start()
		w.must(w.untilFinal(func() error { return call(on) }))
		if begun := w.begun(name) - before; begun != 1 {
			t.Errorf("there were %d operations", begun)
		}
	})
}

func TestAnUnreachableCloudIsReported(t *testing.T) {
	withEach(t, func(_ *testing.T, w *world, _ string, call func(*gceBackend) error) {
		w.mustBe(call(w.open(func(spec *stowagev1alpha1.GCEBackend) { spec.Endpoint = "http://127.0.0.1:9" })),
			backend.Unavailable, "the Compute API can't be reached: look at gce.endpoint")
	})
}

func TestAReadThatFailsHasHadNoEffect(t *testing.T) {
	withEach(t, func(t *testing.T, w *world, name string, call func(*gceBackend) error) {
		before := w.begun(name)
		for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests} {
			for _, method := range []string{"disks.get", "disks.aggregatedList", "instances.get", "snapshots.get", "images.get"} {
				w.inject(gcemock.Fault{Method: method, Status: status})
			}
			w.mustBe(call(w.open()), backend.Unavailable)
			w.removeFaults()
		}
		if begun := w.begun(name) - before; begun != 0 {
			t.Errorf("there were %d operations", begun)
		}
	})
}

func TestAListThatLagsBehindHidesNothing(t *testing.T) {
	withEach(t, func(t *testing.T, w *world, name string, call func(*gceBackend) error) {
		if name == "Provision" {
			w.withDisk(w.open(), "1")
		}
		before := w.begun(name)
		w.plans(func(request *http.Request) fate {
			if strings.HasSuffix(request.URL.Path, "/aggregated/disks") {
				return outdated
			}
			return served
		})
		w.must(w.untilFinal(func() error { return call(w.open()) }))
		w.plans(nil)
		w.checkOutcome(name, name)
		if begun := w.begun(name) - before; name == "Provision" != (begun == 0) {
			t.Errorf("there were %d operations", begun)
		}
	})
}

func TestNoCallIsMadeDuringAPauseThatTheCloudRequested(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.inject(gcemock.Fault{Method: "disks.insert", Count: 1, Status: http.StatusTooManyRequests, RetryAfter: gcemock.Duration(time.Second)})
	_, err := on.Provision(t.Context(), backendtest.Request("1"))
	w.mustBe(err, backend.Unavailable, "too many calls")
	var calls atomic.Int32
	w.plans(func(*http.Request) fate { calls.Add(1); return served })
	_, err = on.Provision(t.Context(), backendtest.Request("1"))
	w.mustBe(err, backend.Unavailable, "asked to be left alone until")
	if pause := time.Until(backend.PausedUntil(err)); pause <= 0 || pause > time.Second {
		t.Errorf("it is to be left alone for %s", pause)
	}
	if calls.Load() > 0 {
		t.Errorf("it was called %d times", calls.Load())
	}
	end := time.Now().Add(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := on.Provision(t.Context(), backendtest.Request("1"))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "left alone") || time.Now().After(end) {
			t.Fatal(err)
		}
		<-tick.C
	}
}

func TestAnExhaustedQuotaIsTriedAgain(t *testing.T) {
	w := newWorld(t, func(options *gcemock.Options) { options.QuotaGb = 15 })
	on := w.open()
	w.mustProvision(on, backendtest.Request("1"))
	_, err := w.provision(on, backendtest.Request("2"))
	w.mustBe(err, backend.Exhausted, "a quota of project demo is used up: raise it, or delete disks", "DISKS_TOTAL_GB")
	_, err = on.Expand(t.Context(), backend.ExpandRequest{ID: "pvc-1", Capacity: resource.MustParse("20Gi")})
	w.mustBe(err, backend.Exhausted)
	w.must(w.untilFinal(func() error { return on.Delete(t.Context(), "pvc-1") }))
	w.mustProvision(on, backendtest.Request("2"))
}

func TestADiskThatIsBeingMadeIsNotAbsent(t *testing.T) {
	w := newWorld(t)
	w.inProgressAtOnce()
	on := w.open()
	w.inject(gcemock.Fault{Method: "disks.insert", Count: 1, Stuck: true})
	request := backendtest.Request("1")
	request.Node = nodeNamed("node-1", zoneA)
	_, err := on.Provision(t.Context(), request)
	w.mustBe(err, backend.InProgress)
	w.mustBe(on.Delete(t.Context(), "pvc-1"), backend.InProgress)
	// Google doesn't show a disk before its operation runs; this cloud does.
	c, err := w.kind.signIn(t.Context(), on.spec)
	w.must(err)
	w.mustBe(c.CheckNoInsert(t.Context(), "pvc-1", c.Places()...), backend.InProgress, "disk pvc-1 is being made in zone europe-west3-a")
	w.must(c.CheckNoInsert(t.Context(), "pvc-2", c.Places()...))
	w.removeFaults()
	w.must(w.untilFinal(func() error { return on.Delete(t.Context(), "pvc-1") }))
	if w.has("pvc-1") {
		t.Error("the disk is there")
	}
}
