package gce

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

func poolPath(zone, name string) string {
	return "projects/" + project + "/zones/" + zone + "/storagePools/" + name
}

// withPool makes a pool for disks of a type.
func (w *world) withPool(zone, name, diskType string) {
	w.Helper()
	operation, err := w.compute.StoragePools.Insert(project, zone, &compute.StoragePool{
		Name: name, StoragePoolType: "zones/" + zone + "/storagePoolTypes/" + diskType, PoolProvisionedCapacityGb: 10 << 10,
	}).Do()
	w.ended(zone, operation, err)
}

// pooled asks for a hyperdisk in one of the pools of its class.
func pooled(uid string, pools ...string) backend.Request {
	return ofClass(uid, map[string]string{"type": balanced, "storage-pools": strings.Join(pools, ",")})
}

// mustBeInPool checks that there is a disk in a zone, in the pool "fast" of that zone.
func (w *world) mustBeInPool(id, zone string) {
	w.Helper()
	disk := w.mustHaveOne(id)
	if cloud.NameOf(disk.Zone) != zone || cloud.PathOf(disk.StoragePool) != poolPath(zone, "fast") {
		w.Errorf("disk %s is in zone %s and in pool %q", id, disk.Zone, disk.StoragePool)
	}
}

func TestADiskIsMadeInThePoolOfItsZone(t *testing.T) {
	w := newWorld(t)
	w.withPool(zoneA, "fast", balanced)
	w.withPool(zoneB, "fast", balanced)
	request := pooled("1", poolPath(zoneA, "fast"), poolPath(zoneB, "fast"))
	for uid, node := range map[string]*corev1.Node{"1": nodeNamed("node-1", zoneA), "2": nodeNamed("node-b", zoneB)} {
		placed := pooled(uid, poolPath(zoneA, "fast"), poolPath(zoneB, "fast"))
		placed.Node = node
		w.mustProvision(w.open(), placed)
	}
	w.mustBeInPool("pvc-1", zoneA)
	w.mustBeInPool("pvc-2", zoneB)
	request.Node = nodeNamed("node-1", zoneA)
	w.mustProvision(w.openAs(w.newKind(thisCluster), "cloud"), request)
}

func TestADiskWithoutANodeIsMadeWhereItsClassHasAPool(t *testing.T) {
	w := newWorld(t)
	w.withPool(zoneB, "fast", balanced)
	for _, uid := range []string{"1", "2", "3", "4", "5", "6"} {
		w.mustProvision(w.open(), pooled(uid, poolPath(zoneB, "fast"), poolPath(zoneC, "fast")))
		w.mustBeInPool("pvc-"+uid, zoneB)
	}
	_, err := w.provision(w.open(), pooled("7", poolPath(zoneC, "fast")))
	w.mustBe(err, backend.Invalid, "has storage pools in zones "+zoneC, "use a class with a pool there in its parameter storage-pools")
}

func TestANodeWhereTheClassHasNoPoolIsLeftToTheScheduler(t *testing.T) {
	w := newWorld(t)
	w.withPool(zoneA, "fast", balanced)
	request := pooled("1", poolPath(zoneA, "fast"))
	request.Node = nodeNamed("node-b", zoneB)
	_, err := w.provision(w.open(), request)
	w.mustBe(err, backend.WrongNode, "node node-b is in zone "+zoneB, "has storage pools in "+zoneA+" only", "allowedTopologies")
	if w.has("pvc-1") {
		t.Error("a disk was made")
	}
}

func TestADiskThatIsBeingMadeWhereTheClassHasNoPoolAnyMoreIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.inProgressAtOnce()
	w.inject(gcemock.Fault{Method: "disks.insert", Count: 1, Stuck: true})
	request := ofClass("1", map[string]string{"type": balanced})
	request.Node = nodeNamed("node-1", zoneA)
	_, err := w.open().Provision(t.Context(), request)
	w.mustBe(err, backend.InProgress)
	// Google doesn't show a disk before its operation runs; this cloud does.
	w.plans(func(call *http.Request) fate {
		switch {
		case strings.HasSuffix(call.URL.Path, "/aggregated/disks"):
			return outdated
		case strings.HasSuffix(call.URL.Path, "/disks/pvc-1"):
			return missing
		}
		return served
	})
	again := pooled("1", poolPath(zoneB, "fast"))
	again.Node = request.Node
	_, err = w.open().Provision(t.Context(), again)
	w.mustBe(err, backend.InProgress, "disk pvc-1 is being made in zone "+zoneA)
}

func TestACopyAndARestoreAreMadeInThePoolOfTheirZone(t *testing.T) {
	w := newWorld(t)
	w.withPool(zoneA, "fast", balanced)
	source := ofClass("1", map[string]string{"type": balanced})
	source.Node = nodeNamed("node-1", zoneA)
	on := w.open()
	w.mustProvision(on, source)
	w.must(w.untilFinal(func() error { return w.snapshot(on) }))

	copied := copying("2")
	copied.Capacity, copied.Parameters = source.Capacity, map[string]string{"storage-pools": poolPath(zoneA, "fast")}
	w.mustProvision(on, copied)
	w.mustBeInPool("pvc-2", zoneA)

	restored := w.restoring("3")
	restored.Capacity, restored.Parameters = source.Capacity, pooled("3", poolPath(zoneA, "fast")).Parameters
	w.mustProvision(on, restored)
	w.mustBeInPool("pvc-3", zoneA)

	elsewhere := copying("4")
	elsewhere.Capacity, elsewhere.Parameters = source.Capacity, map[string]string{"storage-pools": poolPath(zoneB, "fast")}
	elsewhere.Node = nodeNamed("node-1", zoneA)
	_, err := w.provision(on, elsewhere)
	w.mustBe(err, backend.Invalid, "is in zone "+zoneA+", and so is its copy", "use a class with a pool of that zone")
}

func TestAPoolThatTakesNoSuchDiskIsExplained(t *testing.T) {
	w := newWorld(t)
	w.withPool(zoneA, "fast", balanced)
	for name, test := range map[string]struct {
		request backend.Request
		says    string
	}{
		"there is none":                {pooled("1", poolPath(zoneA, "slow")), "there is no storage pool " + poolPath(zoneA, "slow")},
		"it is of a foreign project":   {pooled("2", "projects/foreign/zones/"+zoneA+"/storagePools/fast"), "there is no storage pool projects/foreign/"},
		"it is for another type":       {ofClass("3", map[string]string{"type": "pd-ssd", "storage-pools": poolPath(zoneA, "fast")}), "is for disks of type hyperdisk-balanced, and the disk has type pd-ssd"},
		"the disk can't have its IOPS": {ofClass("4", map[string]string{"type": balanced, "storage-pools": poolPath(zoneA, "fast"), "provisioned-iops-on-create": "1"}), "look at the type, the IOPS and the throughput"},
	} {
		t.Run(name, func(*testing.T) {
			_, err := w.provision(w.open(), test.request)
			w.mustBe(err, backend.Invalid, test.says)
			if w.has(test.request.ID) {
				w.Error("a disk was made")
			}
		})
	}
	w.inject(gcemock.Fault{Method: "storagePools.get", Status: http.StatusForbidden, Reason: "forbidden"})
	_, err := w.provision(w.open(), pooled("5", poolPath(zoneA, "slow")))
	w.mustBe(err, backend.Unavailable, "reading the pool failed", "cannot be found")
}

func TestAPoolThatIsFullIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.withPool(zoneA, "fast", balanced)
	large := pooled("1", poolPath(zoneA, "fast"))
	large.Capacity = resource.MustParse("10200Gi")
	w.mustProvision(w.open(), large)

	_, err := w.provision(w.open(), pooled("2", poolPath(zoneA, "fast")))
	w.mustBe(err, backend.Exhausted, "has no room for a disk of 100Gi", "enlarge the pool, or delete disks in it")

	grow := func() error {
		_, err := w.open().Expand(t.Context(), backend.ExpandRequest{ID: "pvc-1", Capacity: resource.MustParse("10300Gi")})
		return err
	}
	w.mustBe(w.untilFinal(grow), backend.Exhausted, "storage pool fast has no room for 100Gi more of disk pvc-1")

	w.must(w.untilFinal(func() error { return w.open().Delete(t.Context(), "pvc-1") }))
	w.mustProvision(w.open(), pooled("2", poolPath(zoneA, "fast")))
	w.mustBeInPool("pvc-2", zoneA)
}

func TestThePoolAndTheTagsAreInTheIDOfAnInsert(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var ids []string
	w.plans(func(call *http.Request) fate {
		if call.Method != http.MethodPost {
			return served
		}
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, call.URL.Query().Get("requestId"))
		return dropped
	})
	inserts := func(parameters map[string]string, unwanted bool) string {
		request := ofClass("1", parameters)
		request.Node, request.Unwanted = nodeNamed("node-1", zoneA), unwanted
		_, err := w.openAs(w.newKind(thisCluster), "cloud").Provision(t.Context(), request)
		w.mustBe(err, "", "may have taken effect")
		mu.Lock()
		defer mu.Unlock()
		return ids[len(ids)-1]
	}
	plain := map[string]string{"type": balanced}
	fast := map[string]string{"type": balanced, "storage-pools": poolPath(zoneA, "fast") + "," + poolPath(zoneB, "fast")}
	slow := map[string]string{"type": balanced, "storage-pools": poolPath(zoneA, "slow")}
	tagged := map[string]string{"type": balanced, "resource-tags": "123/env/prod,123/team/shop,123/tier/gold"}
	other := map[string]string{"type": balanced, "resource-tags": "123/env/test,123/team/shop,123/tier/gold"}
	var all []string
	for _, parameters := range []map[string]string{plain, fast, slow, tagged, other} {
		id := inserts(parameters, false)
		if slices.Contains(all, id) {
			t.Errorf("with %v the insert has the id of another", parameters)
		}
		if again := inserts(parameters, true); again != id {
			t.Errorf("with %v a repeat, to undo it, has another id", parameters)
		}
		all = append(all, id)
	}
}

func TestAnUndoIsNotHeldUpByAPool(t *testing.T) {
	w := newWorld(t)
	w.inject(gcemock.Fault{Method: "storagePools.get", Status: http.StatusForbidden, Reason: "forbidden"})
	unwanted := pooled("1", poolPath(zoneA, "gone"))
	unwanted.Unwanted = true
	_, err := w.provision(w.open(func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{zoneA} }), unwanted)
	w.mustBe(err, backend.Invalid, "cannot be found")
}
