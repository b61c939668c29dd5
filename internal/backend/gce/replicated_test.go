package gce

import (
	"slices"
	"testing"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// replicatedHyperdisk is a type of Hyperdisk that can be replicated.
const replicatedHyperdisk = "hyperdisk-balanced-high-availability"

// inTwoZones are the parameters of a class whose disks are replicated.
var inTwoZones = map[string]string{"replication-type": "regional-pd"}

// replicated makes a volume that is replicated, for a pod in zone A.
func (w *world) withReplicas(on *gceBackend, uid string) *backend.Volume {
	w.Helper()
	request := ofClass(uid, inTwoZones)
	request.Node = nodeNamed("node-1", zoneA)
	return w.mustProvision(on, request)
}

func TestAClassHasItsDisksReplicatedInTwoZones(t *testing.T) {
	w := newWorld(t)
	on := w.open(func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{zoneA, zoneB, zoneC} })
	made := w.withReplicas(on, "1")
	disk := w.mustHaveOne(made.Handle)
	path := "projects/" + project + "/regions/" + region + "/disks/" + made.Handle
	if disk.Zone != "" || len(disk.ReplicaZones) != 2 || cloud.NameOf(disk.ReplicaZones[0]) != zoneA || made.Attributes[stowagev1alpha1.DiskAttribute] != path {
		t.Errorf("it is %+v of %v", disk, made.Attributes)
	}
	zones := made.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	if zones.Key != corev1.LabelTopologyZone || len(zones.Values) != 2 || !slices.Contains(zones.Values, zoneA) || zones.Values[1] == zoneA {
		t.Errorf("it can be used in %v", zones)
	}
}

func TestADiskWithoutTwoZonesIsRefused(t *testing.T) {
	w := newWorld(t)
	request := ofClass("1", inTwoZones)
	request.Node = nodeNamed("node-1", zoneA)
	_, err := w.open(func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{zoneA} }).Provision(t.Context(), request)
	w.mustBe(err, backend.Invalid, "no other zone of region europe-west3 than europe-west3-a")
	request.Topologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: []string{zoneA}},
	}}}
	_, err = w.open().Provision(t.Context(), request)
	w.mustBe(err, backend.Invalid, "add one to gce.zones and to the allowedTopologies")
	if w.has("pvc-1") {
		t.Error("there is a disk")
	}
}

func TestAReplicatedDiskIsAttachedInBothZonesInTurn(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withReplicas(on, "1").Handle
	a, b := node("node-1"), nodeAt(zoneB, "node-b")
	w.mustAttach(on, id, a, false)
	_, err := w.attach(on, id, b, false)
	w.mustBe(err, backend.Conflict, "is attached to instance node-1")
	attached, err := on.Attachments(t.Context())
	w.must(err)
	if len(attached) != 1 || attached[0].ID != id || attached[0].ProviderID != a.ProviderID {
		t.Errorf("attached are %+v", attached)
	}
	w.mustDetach(on, id, a)
	w.mustAttach(on, id, b, false)
	if w.isAttached(on, id, a) || !w.isAttached(on, id, b) {
		t.Errorf("it is attached to %v", w.users(id))
	}
	_, err = w.attach(on, id, nodeAt(zoneC, "node-c"), false)
	w.mustBe(err, backend.WrongNode, "is in zone europe-west3-a and europe-west3-b, and node node-c in zone europe-west3-c")
}

// zoneFails are the ways in which zone A fails.
func zoneFails(t *testing.T, test func(t *testing.T, w *world, fail func())) {
	t.Helper()
	for name, fails := range map[string]func(*world){
		"nothing can be changed": func(w *world) { w.mock.SetDown(zoneA, true) },
		"nothing can be read":    func(w *world) { w.mock.SetSilent(zoneA) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test(t, w, func() { fails(w) })
		})
	}
}

func TestAReplicatedDiskIsTakenFromAZoneThatIsDown(t *testing.T) {
	zoneFails(t, func(t *testing.T, w *world, fail func()) {
		on := w.open()
		id := w.withReplicas(on, "1").Handle
		a, b := node("node-1"), nodeAt(zoneB, "node-b")
		w.mustAttach(on, id, a, false)
		fail()

		w.mustDetach(on, id, a)
		if users := w.users(id); !slices.Equal(users, []string{"node-1"}) {
			t.Fatalf("it is attached to %v", users)
		}
		w.mustAttach(on, id, b, false)
		w.mustAttach(on, id, b, false)

		if users := w.users(id); !slices.Equal(users, []string{"node-b"}) {
			t.Errorf("it is attached to %v", users)
		}
		w.mock.SetDown(zoneA, false)
		w.mustDetach(on, id, a)
		if users := w.users(id); !slices.Equal(users, []string{"node-b"}) {
			t.Errorf("afterwards it is attached to %v", users)
		}
	})
}

func TestADiskOfOneZoneIsNotTakenFromAZoneThatIsDown(t *testing.T) {
	zoneFails(t, func(t *testing.T, w *world, fail func()) {
		on := w.open()
		id := w.withDisk(on, "1")
		w.mustAttach(on, id, node("node-1"), false)
		fail()

		err := on.Detach(t.Context(), id, node("node-1"))
		w.mustBe(err, backend.Unavailable, "is down")
	})
}

func TestADiskOfAnotherBackendIsNotTakenFromAZoneThatIsDown(t *testing.T) {
	zoneFails(t, func(t *testing.T, w *world, fail func()) {
		on := w.open()
		id := w.withReplicas(on, "1").Handle
		w.mustAttach(on, id, node("node-1"), false)
		fail()

		if err := w.openAs(w.kind, "other").Detach(t.Context(), id, node("node-1")); err == nil {
			t.Error("it counts as detached")
		}
	})
}

func TestAReplicatedDiskIsNotTakenByAReader(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withReplicas(on, "1").Handle
	w.mustAttach(on, id, node("node-1"), false)
	w.mock.SetDown(zoneA, true)

	_, err := w.attach(on, id, nodeAt(zoneB, "node-b"), true)
	w.mustBe(err, backend.Conflict, "is attached elsewhere")
	if users := w.users(id); !slices.Equal(users, []string{"node-1"}) {
		t.Errorf("it is attached to %v", users)
	}
}

func TestAReplicatedDiskIsNotTakenFromAZoneThatIsUp(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withReplicas(on, "1").Handle
	w.mustAttach(on, id, node("node-1"), false)
	w.mock.SetDown(zoneC, true)

	_, err := w.attach(on, id, nodeAt(zoneB, "node-b"), false)
	w.mustBe(err, backend.Conflict, "it can be written on one only")
	_, err = w.attach(on, id, node("node-2"), false)
	w.mustBe(err, backend.Conflict, "it can be written on one only")
}

func TestACopyOfAReplicatedDiskHasItsZones(t *testing.T) {
	w := newWorld(t)
	on := w.open(func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{zoneA, zoneB, zoneC} })
	w.withReplicas(on, "1")
	source := w.mustHaveOne("pvc-1")
	for _, uid := range []string{"2", "3", "4", "5", "6"} { // whose own choices of a second zone differ
		request := copying(uid)
		request.Capacity = ofClass(uid, nil).Capacity
		id := w.mustProvision(on, request).Handle
		if made := w.mustHaveOne(id); !slices.Equal(zonesOf(made), zonesOf(source)) {
			t.Errorf("%s is in %v", id, made.ReplicaZones)
		}
	}
}

func TestACopyOfADiskOfAZoneMayBeReplicated(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.withDisk(on, "1")
	request := copying("2")
	request.Parameters = inTwoZones
	w.mustProvision(on, request)
	if made := w.mustHaveOne("pvc-2"); !slices.Contains(zonesOf(made), zoneA) || len(made.ReplicaZones) != 2 {
		t.Errorf("it is in %v", made.ReplicaZones)
	}
}

func TestAReplicatedDiskIsListedAndDeleted(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withReplicas(on, "1").Handle
	held, err := on.List(t.Context())
	w.must(err)
	if len(held) != 1 || held[0].ID != id || held[0].Claim != backendtest.Request("1").Claim {
		t.Errorf("listed are %+v", held)
	}
	w.must(w.untilFinal(func() error { return on.Delete(t.Context(), id) }))
	if w.has(id) {
		t.Error("it is there")
	}
}

func zonesOf(disk *compute.Disk) (names []string) {
	for _, zone := range disk.ReplicaZones {
		names = append(names, cloud.NameOf(zone))
	}
	return names
}
