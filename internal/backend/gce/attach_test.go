package gce

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"google.golang.org/api/compute/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

// node is one of zone A.
func node(name string) backend.NodeIdentity { return nodeAt(zoneA, name) }

func nodeAt(zone, name string) backend.NodeIdentity {
	return backend.NodeIdentity{Name: name, ProviderID: "gce://" + project + "/" + zone + "/" + name}
}

// withDisk makes a volume of zone A.
func (w *world) withDisk(on *gceBackend, uid string) string {
	w.Helper()
	request := backendtest.Request(uid)
	request.Node = nodeNamed("node-1", zoneA)
	return w.mustProvision(on, request).Handle
}

func (w *world) attach(on *gceBackend, id string, to backend.NodeIdentity, readOnly bool) (attached backend.Attachment, err error) {
	w.Helper()
	err = w.untilFinal(func() (err error) {
		attached, err = on.Attach(w.Context(), backend.AttachRequest{ID: id, Node: to, ReadOnly: readOnly})
		return err
	})
	return attached, err
}

func (w *world) mustAttach(on *gceBackend, id string, to backend.NodeIdentity, readOnly bool) backend.Attachment {
	w.Helper()
	attached, err := w.attach(on, id, to, readOnly)
	w.must(err)
	return attached
}

func (w *world) mustDetach(on *gceBackend, id string, from backend.NodeIdentity) {
	w.Helper()
	w.must(w.untilFinal(func() error { return on.Detach(w.Context(), id, from) }))
}

// users are the instances that have a disk.
func (w *world) users(id string) (names []string) {
	w.Helper()
	for _, user := range w.mustHaveOne(id).Users {
		names = append(names, cloud.NameOf(user))
	}
	return names
}

func TestADiskIsAttachedUnderItsOwnName(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	want := map[string]string{"device": "pvc-1", "serial": "pvc-1", "instance": "gce://demo/europe-west3-a/node-1"}
	for range 2 {
		if got := w.mustAttach(on, id, node("node-1"), false); !maps.Equal(got.Metadata, want) {
			t.Errorf("the metadata is %v", got.Metadata)
		}
	}
	has, err := w.compute.Instances.Get(project, zoneA, "node-1").Do()
	w.must(err)
	if len(has.Disks) != 1 || has.Disks[0].DeviceName != "pvc-1" || has.Disks[0].Mode != "READ_WRITE" || has.Disks[0].AutoDelete {
		t.Errorf("the instance has %+v", has.Disks)
	}
	if asked := w.operations(zoneA, "attachDisk"); asked != 1 {
		t.Errorf("it was attached %d times", asked)
	}
}

func TestADiskComesAndGoesAsOftenAsNeeded(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	for round := range 4 {
		if round%2 == 1 {
			on = w.openAs(w.newKind(thisCluster), "cloud") // another leader
		}
		w.mustAttach(on, id, node("node-1"), false)
		if users := w.users(id); len(users) != 1 {
			t.Fatalf("round %d: after attaching it is on %v", round, users)
		}
		w.mustDetach(on, id, node("node-1"))
		if users := w.users(id); len(users) != 0 {
			t.Fatalf("round %d: after detaching it is on %v", round, users)
		}
		w.mustDetach(on, id, node("node-1"))
	}
}

func TestManyMayReadADiskAndOneMayWriteIt(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.mustAttach(on, id, node("node-1"), true)
	w.mustAttach(on, id, node("node-2"), true)
	_, err := w.attach(on, id, node("node-1"), false)
	w.mustBe(err, backend.Conflict, "is attached to instance node-1 as READ_ONLY, and is to be READ_WRITE")

	w.mustDetach(on, id, node("node-1"))
	_, err = w.attach(on, id, node("node-1"), false)
	w.mustBe(err, backend.Conflict, "is attached to instance node-2")
	w.mustDetach(on, id, node("node-2"))
	w.mustAttach(on, id, node("node-1"), false)
	_, err = w.attach(on, id, node("node-2"), true)
	w.mustBe(err, backend.Conflict, "is attached elsewhere")
}

func TestOfTwoConcurrentAttachesOneSucceeds(t *testing.T) {
	for round := range 5 {
		w := newWorld(t)
		id := w.withDisk(w.open(), "1")
		errs := map[string]error{}
		var mu sync.Mutex
		var both sync.WaitGroup
		for _, name := range []string{"node-1", "node-2"} {
			both.Go(func() {
				_, err := w.attach(w.openAs(w.newKind(thisCluster), "cloud"), id, node(name), false)
				mu.Lock()
				defer mu.Unlock()
				errs[name] = err
			})
		}
		both.Wait()
		users := w.users(id)
		if len(users) != 1 || errs[users[0]] != nil {
			t.Fatalf("round %d: it is on %v, and the calls returned %v", round, users, errs)
		}
		delete(errs, users[0])
		for _, err := range errs {
			w.mustBe(err, backend.Conflict)
		}
	}
}

func TestAnAttachThatANodeCanNotHaveIsRefused(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	for name, test := range map[string]struct {
		to   backend.NodeIdentity
		id   string
		kind backend.ErrorKind
		says string
	}{
		"a node without a provider":    {backend.NodeIdentity{Name: "node-1"}, id, backend.WrongNode, `its spec.providerID is ""`},
		"a node of another provider":   {backend.NodeIdentity{Name: "node-1", ProviderID: "aws:///eu-1/i-7"}, id, backend.WrongNode, "aws:///eu-1/i-7"},
		"a node of half a name":        {backend.NodeIdentity{Name: "node-1", ProviderID: "gce://demo/node-1"}, id, backend.WrongNode, "gce://PROJECT/ZONE/NAME"},
		"a node of another project":    {backend.NodeIdentity{Name: "n", ProviderID: "gce://other/europe-west3-a/n"}, id, backend.WrongNode, "is an instance of project other"},
		"a node of another zone":       {nodeAt(zoneB, "node-b"), id, backend.WrongNode, "is in zone europe-west3-a, and node node-b in zone europe-west3-b"},
		"a node without an instance":   {node("node-9"), id, backend.WrongNode, "node node-9 has no instance: there is no gce://demo/europe-west3-a/node-9"},
		"a volume that was never":      {node("node-1"), "pvc-9", backend.NotFound, "has no disk pvc-9"},
		"a volume of no id we made":    {node("node-1"), "boot", backend.Conflict, "no id of a volume"},
		"a node of a zone we know not": {nodeAt("mars-a", "node-1"), id, backend.Invalid, "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := on.Attach(t.Context(), backend.AttachRequest{ID: test.id, Node: test.to})
			w.mustBe(err, test.kind, test.says)
		})
	}
	if users := w.users(id); len(users) > 0 {
		t.Errorf("it is on %v", users)
	}
}

func TestNothingIsAttachedForAForeignHandle(t *testing.T) {
	w := newWorld(t)
	on := w.open(allowing)
	for _, handle := range []string{"", "boot", "PVC-1", "pvc-1/../2", "projects/demo", "projects/demo/zones/*/disks/pvc-1"} {
		_, err := on.Attach(t.Context(), backend.AttachRequest{ID: handle, Node: node("node-1")})
		if err == nil || backend.Unfinished(err) {
			t.Errorf("attaching %q: %v", handle, err)
		}
		is, err := on.IsAttached(t.Context(), handle, node("node-1"))
		if is || err != nil {
			t.Errorf("%q is attached: %t, %v", handle, is, err)
		}
		w.must(on.Detach(t.Context(), handle, node("node-1")))
	}
}

func TestANodeHasRoomForSoManyDisks(t *testing.T) {
	w := newWorld(t)
	w.must(w.mock.EnsureInstance(project, zoneA, "small", "e2-micro"))
	on := w.open()
	for i := range 17 {
		_, err := w.attach(on, w.withDisk(on, fmt.Sprint(i)), node("small"), false)
		if i < 16 {
			w.must(err)
		} else {
			w.mustBe(err, backend.Exhausted, "instance small has as many disks as it can have")
		}
	}
}

func TestAttachmentsOfOtherProgramsAreLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		asked compute.AttachedDisk
		says  string
	}{
		"under another name":         {compute.AttachedDisk{Source: "pvc-1", DeviceName: "data"}, "by another program, as device data"},
		"to be deleted with it":      {compute.AttachedDisk{Source: "pvc-1", DeviceName: "pvc-1", AutoDelete: true}, "by another program"},
		"another disk of its name":   {compute.AttachedDisk{Source: "other", DeviceName: "pvc-1"}, "has another disk"},
		"on another node, to write":  {compute.AttachedDisk{Source: "pvc-1", DeviceName: "pvc-1"}, ""},
		"on another node, read-only": {compute.AttachedDisk{Source: "pvc-1", DeviceName: "x", Mode: "READ_ONLY"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.open()
			id := w.withDisk(on, "1")
			w.put(zoneA, &compute.Disk{Name: "other", SizeGb: 10})
			test.asked.Source = "projects/" + project + "/zones/" + zoneA + "/disks/" + test.asked.Source
			at := "node-1"
			if test.says == "" {
				at = "node-2"
			}
			operation, err := w.compute.Instances.AttachDisk(project, zoneA, at, &test.asked).Do()
			w.ended(zoneA, operation, err)
			_, err = w.attach(on, id, node("node-1"), false)
			w.mustBe(err, backend.Conflict, test.says)
		})
	}
}

func TestADiskIsDetachedByWhateverNameItHas(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	operation, err := w.compute.Instances.AttachDisk(project, zoneA, "node-1", &compute.AttachedDisk{
		Source: "projects/" + project + "/zones/" + zoneA + "/disks/pvc-1", DeviceName: "data",
	}).Do()
	w.ended(zoneA, operation, err)
	w.mustDetach(on, id, node("node-1"))
	if users := w.users(id); len(users) > 0 {
		t.Errorf("it is on %v", users)
	}
}

func TestThereIsNothingToDetachWhereThereIsNoInstance(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.mustAttach(on, id, node("node-2"), false)
	for name, from := range map[string]backend.NodeIdentity{
		"one that is gone":           node("node-9"),
		"one of another provider":    {Name: "node-2", ProviderID: "aws:///eu-1/i-7"},
		"an unknown one":             {Name: "node-9"},
		"one that has another disk":  node("node-1"),
		"one of another zone":        nodeAt(zoneB, "node-b"),
		"one of no name that can be": {Name: "node.example.com"},
		"one of a project beside it": {Name: "n", ProviderID: "gce://other/europe-west3-a/n"},
	} {
		if err := on.Detach(t.Context(), id, from); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.must(on.Detach(t.Context(), "pvc-9", node("node-1")))
	if users := w.users(id); len(users) != 1 {
		t.Errorf("it is on %v", users)
	}
	w.mustBe(on.Detach(t.Context(), id, backend.NodeIdentity{Name: "n", ProviderID: "gce://hidden/europe-west3-a/n"}), backend.Unavailable, "project hidden")
}

func TestANodeWithoutAProviderIDIsFoundByName(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.mustAttach(on, id, node("node-1"), false)
	w.mustDetach(on, id, backend.NodeIdentity{Name: "node-1"})
	if users := w.users(id); len(users) > 0 {
		t.Errorf("it is on %v", users)
	}
}

func TestADiskThatIsBeingAttachedIsDetachedAfterThat(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.inProgressAtOnce()
	w.inject(gcemock.Fault{Method: "instances.attachDisk", Count: 1, Stuck: true})
	_, err := on.Attach(t.Context(), backend.AttachRequest{ID: id, Node: node("node-1")})
	w.mustBe(err, backend.InProgress, "attaching disk")
	other := w.openAs(w.newKind(thisCluster), "cloud")
	other.kind.clients.Limits.Operation = quick
	w.mustBe(other.Detach(t.Context(), id, node("node-1")), backend.InProgress, "attachDisk at instance node-1 goes on")
	w.must(other.Detach(t.Context(), id, node("node-2"))) // nothing is under way there
	w.removeFaults()
	w.mustDetach(other, id, node("node-1"))
	if users := w.users(id); len(users) > 0 {
		t.Errorf("it is on %v", users)
	}
}

func TestADiskThatIsBeingDetachedIsNotTakenForAttached(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.mustAttach(on, id, node("node-1"), false)
	w.inProgressAtOnce()
	w.inject(gcemock.Fault{Method: "instances.detachDisk", Count: 1, Stuck: true})
	w.mustBe(on.Detach(t.Context(), id, node("node-1")), backend.InProgress, "detaching disk")
	_, err := on.Attach(t.Context(), backend.AttachRequest{ID: id, Node: node("node-1")})
	w.mustBe(err, backend.InProgress, "detachDisk at instance node-1 goes on")
	w.removeFaults()
	w.mustAttach(on, id, node("node-1"), false)
	if users := w.users(id); len(users) != 1 {
		t.Errorf("it is on %v", users)
	}
}

func TestADiskThatIsAttachedIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.mustAttach(on, id, node("node-1"), false)
	w.mustBe(on.Delete(t.Context(), id), backend.InProgress, "is attached to instance node-1")
	w.mustDetach(on, id, node("node-1"))
	w.must(w.untilFinal(func() error { return on.Delete(t.Context(), id) }))
}

// Any server answers 404 to a path that it doesn't know.
func TestAServerThatIsNoComputeAPIDoesNotProveADiskGone(t *testing.T) {
	w := newWorld(t)
	id := w.withDisk(w.open(), "1")
	astray := w.open(func(spec *stowagev1alpha1.GCEBackend) { spec.Endpoint += "v2/" })
	w.mustBe(astray.Delete(t.Context(), id), backend.Unavailable, "correct gce.endpoint")
	if _, err := astray.Attachments(t.Context()); err == nil {
		t.Error("it says that nothing is attached")
	}
	w.mustHaveOne(id)
}

func TestWhereDisksAreAttachedIsListed(t *testing.T) {
	w := newWorld(t)
	w.kind.clients.Limits.Page = 1
	on, other := w.open(), w.openAs(w.kind, "archive", func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{zoneA} })
	if attached, err := on.Attachments(t.Context()); err != nil || len(attached) > 0 {
		t.Errorf("without disks it lists %v, %v", attached, err)
	}
	one, two, theirs := w.withDisk(on, "1"), w.withDisk(on, "2"), w.withDisk(other, "3")
	w.mustAttach(on, one, node("node-1"), false)
	w.mustAttach(on, two, node("node-1"), true)
	w.mustAttach(on, two, node("node-2"), true)
	w.mustAttach(other, theirs, node("node-2"), false)
	attached, err := on.Attachments(t.Context())
	w.must(err)
	want := map[backend.Attached]bool{
		{ID: one, ProviderID: "gce://demo/europe-west3-a/node-1"}:                 true,
		{ID: two, ProviderID: "gce://demo/europe-west3-a/node-1", ReadOnly: true}: true,
		{ID: two, ProviderID: "gce://demo/europe-west3-a/node-2", ReadOnly: true}: true,
	}
	for _, each := range attached {
		if !want[each] {
			t.Errorf("%+v is listed", each)
		}
		delete(want, each)
	}
	if len(want) > 0 {
		t.Errorf("not listed are %v", want)
	}
}
