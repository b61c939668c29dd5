package gce

import (
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/api/compute/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

const legacy = "projects/" + project + "/zones/" + zoneA + "/disks/legacy"

// allowing lets a backend attach existing disks.
func allowing(spec *stowagev1alpha1.GCEBackend) { spec.ExistingDisks = true }

// withExisting makes a disk as another program does.
func (w *world) withExisting() *gceBackend {
	w.Helper()
	w.put(zoneA, &compute.Disk{Name: "legacy", SizeGb: 10, Description: `{"kubernetes.io/created-for/pv/name":"data"}`, Labels: map[string]string{"team": "a"}})
	return w.open(allowing)
}

func (w *world) attachExisting(on *gceBackend, id string, to backend.NodeIdentity, readOnly bool) (attached backend.Attachment, err error) {
	w.Helper()
	err = w.untilFinal(func() (err error) {
		attached, err = on.Attach(w.Context(), backend.AttachRequest{ID: id, Node: to, ReadOnly: readOnly})
		return err
	})
	return attached, err
}

func (w *world) detachExisting(on *gceBackend, id string, from backend.NodeIdentity) error {
	w.Helper()
	return w.untilFinal(func() error { return on.Detach(w.Context(), id, from) })
}

// attachBehind attaches the disk as another program does.
func (w *world) attachBehind(as *compute.AttachedDisk) {
	w.Helper()
	as.Source = legacy
	operation, err := w.compute.Instances.AttachDisk(project, zoneA, "node-1", as).Do()
	w.ended(zoneA, operation, err)
}

func TestAnExistingDiskComesAndGoesAndStaysAsItWas(t *testing.T) {
	w := newWorld(t)
	on := w.withExisting()
	before := w.mustHaveOne("legacy")
	for range 3 {
		for range 2 {
			attached, err := w.attachExisting(on, legacy, node("node-1"), false)
			w.must(err)
			if device := attached.Metadata["device"]; device != deviceOfExisting(legacy) || attached.Metadata["serial"] != device {
				t.Errorf("the metadata is %v", attached.Metadata)
			}
		}
		if users := w.users("legacy"); len(users) != 1 {
			t.Fatalf("it is on %v", users)
		}
		w.must(w.detachExisting(on, legacy, node("node-1")))
		w.must(w.detachExisting(on, legacy, node("node-1")))
	}
	after := w.mustHaveOne("legacy")
	after.LastAttachTimestamp, after.LastDetachTimestamp = before.LastAttachTimestamp, before.LastDetachTimestamp
	if !reflect.DeepEqual(before, withServer(after, before)) {
		t.Errorf("it was %+v, and is %+v", before, after)
	}
	if asked := w.operations(zoneA, "attachDisk"); asked != 3 {
		t.Errorf("it was attached %d times", asked)
	}
}

// Every other call with its path or its name does nothing, and nothing
// but attachDisk and DetachDisk is ever sent.
func TestNothingElseIsEverDoneToAnExistingDisk(t *testing.T) {
	w := newWorld(t)
	on := w.withExisting()
	_, err := w.attachExisting(on, legacy, node("node-1"), false)
	w.must(err)
	before := w.mustHaveOne("legacy")
	var sent []string
	w.plans(func(request *http.Request) fate {
		if request.Method != http.MethodGet && !strings.HasSuffix(request.URL.Path, "/wait") {
			sent = append(sent, request.Method+" "+request.URL.Path)
		}
		return served
	})
	for _, id := range []string{legacy, "legacy"} {
		request := backendtest.Request("1")
		request.ID = id
		_, err := on.Provision(t.Context(), request)
		w.mustBe(err, backend.Conflict)
		_, err = on.Expand(t.Context(), backend.ExpandRequest{ID: id, Capacity: resource.MustParse("20Gi")})
		w.mustBe(err, backend.Conflict)
		_, err = on.Retain(t.Context(), id)
		w.mustBe(err, backend.Conflict)
		w.mustBe(on.Delete(t.Context(), id), backend.Conflict, "nothing is deleted")
	}
	_, err = on.Attach(t.Context(), backend.AttachRequest{ID: "legacy", Node: node("node-1")})
	w.mustBe(err, backend.Conflict)
	// No volume has such an id: nothing was attached for it.
	w.must(on.Detach(t.Context(), "legacy", node("node-1")))
	if held, err := on.List(t.Context()); err != nil || len(held) > 0 {
		t.Errorf("it is listed, and could be taken for an orphan: %v %v", held, err)
	}
	if attached, err := on.Attachments(t.Context()); err != nil || len(attached) > 0 {
		t.Errorf("it is listed, and could count as dangling: %v %v", attached, err)
	}
	if after := w.mustHaveOne("legacy"); !reflect.DeepEqual(before, withServer(after, before)) || len(sent) > 0 {
		t.Errorf("it was %+v, and is %+v, after %v", before, after, sent)
	}
}

func TestAnExistingDiskThatAnotherProgramAttachedIsLeftAlone(t *testing.T) {
	for name, as := range map[string]*compute.AttachedDisk{
		"under its own name":          {DeviceName: "legacy"},
		"under no name":               {},
		"to go with the instance":     {DeviceName: deviceOfExisting(legacy), AutoDelete: true},
		"under another's device name": {DeviceName: deviceOfExisting(legacy + "2")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.withExisting()
			w.attachBehind(as)
			for _, to := range []string{"node-1", "node-2"} {
				_, err := w.attachExisting(on, legacy, node(to), false)
				w.mustBe(err, backend.Conflict)
				w.must(w.detachExisting(on, legacy, node(to)))
			}
			w.must(w.detachExisting(on, legacy, backend.NodeIdentity{Name: "node-1"}))
			if users := w.users("legacy"); len(users) != 1 || users[0] != "node-1" {
				t.Errorf("it is on %v", users)
			}
			if asked := w.operations(zoneA, "detachDisk"); asked != 0 {
				t.Errorf("there were %d detach calls", asked)
			}
		})
	}
}

func TestManyMayReadAnExistingDiskAndOneMayWriteIt(t *testing.T) {
	w := newWorld(t)
	on := w.withExisting()
	for _, name := range []string{"node-1", "node-2"} {
		_, err := w.attachExisting(on, legacy, node(name), true)
		w.must(err)
	}
	_, err := w.attachExisting(on, legacy, node("node-1"), false)
	w.mustBe(err, backend.Conflict, "as READ_ONLY")
	w.must(w.detachExisting(on, legacy, node("node-1")))
	_, err = w.attachExisting(on, legacy, node("node-1"), false)
	w.mustBe(err, backend.Conflict, "node-2")
}

func TestWhichDisksCanNotBeAttachedAsExistingOnes(t *testing.T) {
	for name, test := range map[string]struct {
		id   string
		to   backend.NodeIdentity
		kind backend.ErrorKind
		says string
	}{
		"one that isn't there":          {strings.Replace(legacy, "legacy", "absent", 1), node("node-1"), backend.NotFound, "has no disk absent"},
		"another project's":             {strings.Replace(legacy, project, "other", 1), node("node-1"), backend.Conflict, "left alone"},
		"one of another zone":           {legacy, nodeAt(zoneB, "node-b"), backend.WrongNode, "in zone " + zoneB},
		"one of a zone that isn't ours": {strings.Replace(legacy, zoneA, zoneC, 1), nodeAt(zoneC, "node-c"), backend.WrongNode, "gce.zones"},
		"one without a zone":            {"projects/demo/zones/UNSPECIFIED/disks/legacy", node("node-1"), backend.Invalid, "no path"},
		"a region's":                    {"projects/demo/regions/europe-west3/disks/legacy", node("node-1"), backend.Invalid, "no path"},
		"what leads elsewhere":          {"projects/demo/zones/" + zoneA + "/disks/../instances/node-1", node("node-1"), backend.Invalid, "no path"},
		"a volume of Stowage's":         {strings.Replace(legacy, "legacy", "pvc-1", 1), node("node-1"), backend.Conflict, "use that volume"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.withExisting()
			w.withDisk(on, "1")
			_, err := w.attachExisting(on, test.id, test.to, false)
			w.mustBe(err, test.kind, test.says)
			if asked := w.operations(zoneA, "attachDisk"); asked != 0 {
				t.Errorf("there were %d attach calls", asked)
			}
		})
	}
}

func TestABackendThatAllowsNoExistingDisksAnyMoreStillDetachesThem(t *testing.T) {
	w := newWorld(t)
	_, err := w.attachExisting(w.withExisting(), legacy, node("node-1"), false)
	w.must(err)
	closed := w.open()
	_, err = w.attachExisting(closed, legacy, node("node-2"), false)
	w.mustBe(err, backend.Invalid, "set gce.existingDisks")
	w.must(w.detachExisting(closed, legacy, node("node-1")))
	if users := w.users("legacy"); len(users) != 0 {
		t.Errorf("it is on %v", users)
	}
}

// Each call that changes something is cut off, before it arrives and after it took
// effect, and another leader goes on.
func TestACrashWhileAnExistingDiskIsAttachedOrDetachedIsRecovered(t *testing.T) {
	for name, becomes := range map[string]fate{"before the call": dropped, "after the call": unanswered} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.withExisting()
			once := func(verb string) {
				var cut atomic.Bool
				w.plans(func(request *http.Request) fate {
					if strings.HasSuffix(request.URL.Path, verb) && cut.CompareAndSwap(false, true) {
						return becomes
					}
					return served
				})
			}
			another := func() *gceBackend { return w.openAs(w.newKind(thisCluster), "cloud", allowing) }
			once("/attachDisk")
			if _, err := on.Attach(t.Context(), backend.AttachRequest{ID: legacy, Node: node("node-1")}); err == nil {
				t.Fatal("a call that was cut off succeeded")
			}
			_, err := w.attachExisting(another(), legacy, node("node-1"), false)
			w.must(err)
			once("/detachDisk")
			if err := on.Detach(t.Context(), legacy, node("node-1")); err == nil {
				t.Fatal("a call that was cut off succeeded")
			}
			w.must(w.detachExisting(another(), legacy, node("node-1")))
			if users := w.users("legacy"); len(users) != 0 {
				t.Errorf("it is on %v", users)
			}
			if attached, detached := w.operations(zoneA, "attachDisk"), w.operations(zoneA, "detachDisk"); attached != 1 || detached != 1 {
				t.Errorf("it was attached %d times and detached %d times", attached, detached)
			}
		})
	}
}
