package gce

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

// Types of disks: of balanced ones clients provision both, of extreme ones IOPS alone.
const balanced, extreme = "hyperdisk-balanced", "hyperdisk-extreme"

func ofType(name string) func(*stowagev1alpha1.GCEBackend) {
	return func(spec *stowagev1alpha1.GCEBackend) { spec.DiskType = name }
}

// iops are the attributes of a class.
func iops(number string) backend.Attributes { return having("iops", number) }

func having(parameters ...string) backend.Attributes {
	attributes := backend.Attributes{Class: "gold", Parameters: map[string]string{}}
	for i := 0; i < len(parameters); i += 2 {
		attributes.Parameters[parameters[i]] = parameters[i+1]
	}
	return attributes
}

func (w *world) modify(on *gceBackend, id string, attributes backend.Attributes) error {
	return w.untilFinal(func() error { return on.Modify(w.Context(), id, attributes) })
}

// mustPerform checks what a disk is provisioned with.
func (w *world) mustPerform(id string, iops, throughput int64) {
	w.Helper()
	disk := w.mustHaveOne(id)
	if disk.ProvisionedIops != iops || disk.ProvisionedThroughput != throughput {
		w.Errorf("disk %s has %d IOPS and %d MiB/s, not %d and %d", id, disk.ProvisionedIops, disk.ProvisionedThroughput, iops, throughput)
	}
}

func TestTheContractOfChangesIsKept(t *testing.T) {
	backendtest.ModifyContract(t, func(t *testing.T) (backend.Backend, func(string) map[string]string) {
		w := newWorld(t)
		return w.open(ofType(extreme)), func(handle string) map[string]string {
			return map[string]string{"iops": strconv.FormatInt(w.mustHaveOne(handle).ProvisionedIops, 10)}
		}
	})
}

func TestADiskIsMadeWithThePerformanceOfItsClassAndGetsAnother(t *testing.T) {
	w := newWorld(t)
	usual := int64(9000)
	on := w.open(ofType(balanced), func(spec *stowagev1alpha1.GCEBackend) { spec.ProvisionedIOPS = &usual })
	request := backendtest.Request("1")
	request.Capacity = resource.MustParse("100Gi")
	request.Node = nodeNamed("node-1", zoneA)
	request.Attributes = new(having("throughput", "200Mi"))
	id := w.mustProvision(on, request).Handle
	w.mustPerform(id, 9000, 200)

	for _, change := range []struct {
		to               backend.Attributes
		iops, throughput int64
	}{
		{having("iops", "5000", "throughput", "300Mi"), 5000, 300},
		{having("iops", "6000"), 6000, 300},
		{having("throughput", "250M"), 6000, 239},
		{having("iops", "5000", "throughput", "300Mi"), 5000, 300},
		{having("iops", "5000", "throughput", "300Mi"), 5000, 300},
	} {
		w.must(w.modify(on, id, change.to))
		w.mustPerform(id, change.iops, change.throughput)
	}
	if begun := w.operations(zoneA, "update"); begun != 4 {
		t.Errorf("there were %d operations", begun)
	}
}

func TestADiskOfAPodChangesWhileItIsAttached(t *testing.T) {
	w := newWorld(t)
	on := w.open(ofType(extreme))
	id := w.withDisk(on, "1")
	w.must(w.mock.EnsureInstance(project, zoneA, "node-c3", "c3-standard-88"))
	w.mustAttach(on, id, node("node-c3"), false)
	w.must(w.modify(on, id, iops("4000")))
	w.mustPerform(id, 4000, 0)
}

// An operation's answer is kept for a day, in which the disk may get the same performance again.
func TestAChangeThatWasUndoneIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	on := w.open(ofType(extreme))
	id := w.withDisk(on, "1")
	for range 3 {
		for _, number := range []string{"4000", "5000"} {
			w.must(w.modify(w.openAs(w.newKind(thisCluster), "cloud"), id, iops(number)))
			want, err := strconv.ParseInt(number, 10, 64)
			w.must(err)
			w.mustPerform(id, want, 0)
		}
	}
}

func TestPerformanceThatADiskCanNotHaveIsRefused(t *testing.T) {
	w := newWorld(t)
	for i, of := range []struct {
		diskType   string
		attributes backend.Attributes
		words      []string
	}{
		{"pd-balanced", iops("4000"), []string{"VolumeAttributesClass gold", "its type", "does not support it"}},
		{extreme, iops("9000000"), []string{"VolumeAttributesClass gold", "its size", "between"}},
		{extreme, iops("many"), []string{`iops "many" is no number of IOPS`, "5000"}},
		{extreme, iops("-1"), []string{"no number of IOPS"}},
		{balanced, having("throughput", "250"), []string{"no number of bytes per second", "250Mi"}},
		{balanced, having("throughput", "fast"), []string{"no number of bytes per second"}},
		{extreme, having("type", "pd-ssd"), []string{`parameter "type"`, "only iops and throughput"}},
	} {
		on := w.open(ofType(of.diskType))
		id := w.withDisk(on, fmt.Sprint("made-", i))
		before := w.mustHaveOne(id)
		w.mustBe(w.modify(on, id, of.attributes), backend.Invalid, of.words...)
		w.mustPerform(id, before.ProvisionedIops, before.ProvisionedThroughput)

		request := backendtest.Request(fmt.Sprint("refused-", i))
		request.Attributes = new(of.attributes)
		_, err := w.provision(on, request)
		w.mustBe(err, backend.Invalid, "VolumeAttributesClass")
		if w.has(request.ID) {
			t.Errorf("%v: there is a disk", of.attributes)
		}
	}
}

func TestADiskOfAnotherIsNotChanged(t *testing.T) {
	w := newWorld(t)
	on := w.open(ofType(extreme))
	id := w.withDisk(on, "1")
	w.mustBe(w.modify(w.openAs(w.kind, "another"), id, iops("4000")), backend.Conflict)
	w.mustBe(w.modify(w.openAs(w.newKind(otherCluster), "cloud"), id, iops("4000")), backend.Conflict)
	w.mustBe(on.Modify(t.Context(), "pvc-9", iops("4000")), backend.NotFound)
	w.mustPerform(id, w.mustHaveOne(id).ProvisionedIops, 0)
	if begun := w.operations(zoneA, "update"); begun != 0 {
		t.Errorf("there were %d operations", begun)
	}
}

func TestAChangeThatWasRefusedForNowIsOver(t *testing.T) {
	for name, fault := range map[string]gcemock.Fault{
		"a call":                        {Status: http.StatusForbidden, Reason: "quotaExceeded"},
		"an operation":                  {Operation: "QUOTA_EXCEEDED"},
		"for a reason that isn't known": {Operation: "OUT_OF_PATIENCE"},
		"too soon":                      {Operation: "RESOURCE_OPERATION_RATE_EXCEEDED"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.open(ofType(extreme))
			id := w.withDisk(on, "1")
			before := w.mustHaveOne(id).ProvisionedIops
			fault.Method, fault.Count = "disks.update", 1
			w.inject(fault)
			err := on.Modify(t.Context(), id, iops("4000"))
			for errors.Is(err, backend.InProgress) {
				err = on.Modify(t.Context(), id, iops("4000"))
			}
			w.mustBe(err, backend.NotReady, "attributes of VolumeAttributesClass gold")
			w.mustPerform(id, before, 0)
			w.must(w.modify(on, id, iops("4000")))
			w.mustPerform(id, 4000, 0)
		})
	}
}

// The leader of before decided on it, and was late.
func TestAChangeThatWasUndoneSinceIsNotMadeByTheSameCall(t *testing.T) {
	w := newWorld(t)
	on := w.open(ofType(extreme))
	id := w.withDisk(on, "1")
	w.must(w.modify(on, id, iops("4000")))
	w.must(w.modify(on, id, iops("5000")))
	w.must(w.modify(on, id, iops("4000")))
	w.must(w.modify(on, id, iops("5000")))
	w.must(w.modify(on, id, iops("4000")))
	late := w.openAs(w.newKind(thisCluster), "cloud")
	w.mustBe(late.Modify(t.Context(), id, iops("5000")), backend.InProgress, "was undone since")
	w.mustPerform(id, 4000, 0)
}

func TestARequestThatIsNotUnderstoodSaysNothingOfAChange(t *testing.T) {
	w := newWorld(t)
	on := w.open(ofType(extreme))
	id := w.withDisk(on, "1")
	for _, method := range []string{"disks.get", "disks.aggregatedList"} {
		w.inject(gcemock.Fault{Method: method, Status: http.StatusBadRequest, Reason: "badRequest"})
		w.mustBe(on.Modify(t.Context(), id, iops("4000")), backend.Unavailable)
		w.removeFaults()
	}
}

func TestALimitOfChangesIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	on := w.open(ofType(extreme))
	id := w.withDisk(on, "1")
	w.inject(gcemock.Fault{Method: "disks.update", Count: 1, Status: http.StatusTooManyRequests})
	w.mustBe(on.Modify(t.Context(), id, iops("4000")), backend.Unavailable)
	w.must(w.modify(on, id, iops("4000")))
	w.mustPerform(id, 4000, 0)
}
