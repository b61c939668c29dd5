package gce

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

// inEachZone asks for a disk in each zone, restored from the snapshot.
func (w *world) inEachZone(uid string) backend.Request {
	request := w.restoring(uid)
	request.Parameters, request.AccessModes = map[string]string{"enable-multi-zone-provisioning": "true"}, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	return request
}

// mustBeIn checks in which zones there are disks of a name, and that each was made from the snapshot.
func (w *world) mustBeIn(id string, zones ...string) {
	w.Helper()
	var found []string
	for _, one := range w.disksOf(id) {
		found = append(found, cloud.NameOf(one.Zone))
		if cloud.PathOf(one.SourceSnapshot) != handleOfA || !strings.Contains(one.Description, `"zones":["`) {
			w.Errorf("the disk in %s is of %q, and described as %s", one.Zone, one.SourceSnapshot, one.Description)
		}
	}
	if strings.Join(found, " ") != strings.Join(zones, " ") {
		w.Errorf("disks %s are in %v, want %v", id, found, zones)
	}
}

// insertIn reports whether a call makes a disk in a zone.
func insertIn(request *http.Request, zone string) bool {
	return request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/zones/"+zone+"/disks")
}

// inZones has a backend make its disks in some zones.
func inZones(names ...string) func(*stowagev1alpha1.GCEBackend) {
	return func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = names }
}

// hidingB shows nothing of disk pvc-2 in zone B. Google doesn't show a disk before its operation runs; this cloud does.
func hidingB(request *http.Request) fate {
	switch {
	case strings.HasSuffix(request.URL.Path, "/aggregated/disks"):
		return outdated
	case strings.HasSuffix(request.URL.Path, "/zones/"+zoneB+"/disks/pvc-2"):
		return missing
	}
	return served
}

func TestAVolumeThatIsOnlyReadHasADiskInEachZone(t *testing.T) {
	w := newWorld(t)
	withSnapshot(w, w.open())
	// Of a backend whose disks have replicas otherwise.
	w.replicated = true
	on := w.open()

	made := w.mustProvision(on, w.inEachZone("2"))
	again := w.mustProvision(w.openAs(w.newKind(thisCluster), "cloud"), w.inEachZone("2"))

	w.mustBeIn("pvc-2", zoneA, zoneB)
	for _, volume := range []*backend.Volume{made, again} {
		zones := volume.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values
		if volume.Handle != "pvc-2" || len(zones) != 2 || zones[0] != zoneA || zones[1] != zoneB {
			t.Errorf("it is %+v, in %v", volume, zones)
		}
	}
	a, b := node("node-1"), nodeAt(zoneB, "node-b")
	for _, one := range []backend.NodeIdentity{a, node("node-2"), b} {
		w.mustAttach(on, "pvc-2", one, true)
	}
	w.mustDetach(on, "pvc-2", a)
	w.mustDetach(on, "pvc-2", node("node-2"))
	if attached, err := on.IsAttached(t.Context(), "pvc-2", b); err != nil || !attached {
		t.Errorf("at node-b it is attached: %v, %v", attached, err)
	}

	// The disk in zone A isn't used, and is left all the same.
	w.mustBe(on.Delete(t.Context(), "pvc-2"), backend.InProgress, "zones/europe-west3-b/disks/pvc-2 is attached to instance node-b")
	w.mustBeIn("pvc-2", zoneA, zoneB)
	w.mustDetach(on, "pvc-2", b)
	w.must(w.untilFinal(func() error { return on.Delete(t.Context(), "pvc-2") }))
	w.mustBeIn("pvc-2")
}

func TestDisksInEachZoneAreOneVolumeThatIsKeptWhole(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withSnapshot(w, on)
	w.mustProvision(on, w.inEachZone("2"))
	w.plans(func(request *http.Request) fate {
		if strings.HasSuffix(request.URL.Path, "/zones/"+zoneB+"/disks/pvc-2/setLabels") {
			return dropped
		}
		return served
	})
	if _, err := on.Retain(t.Context(), "pvc-2"); err == nil {
		t.Error("half of it is kept, and that counts as all")
	}
	held := func() (found []backend.Held) {
		all, err := on.List(t.Context())
		w.must(err)
		for _, one := range all {
			if one.ID == "pvc-2" {
				found = append(found, one)
			}
		}
		return found
	}
	if found := held(); len(found) != 1 || !found[0].Retained {
		t.Errorf("with one disk labelled, it is listed as %+v", found)
	}
	w.plans(nil)

	var place string
	w.must(w.untilFinal(func() (err error) { place, err = on.Retain(t.Context(), "pvc-2"); return err }))

	if !strings.Contains(place, zoneA) || !strings.Contains(place, zoneB) {
		t.Errorf("it is kept at %q", place)
	}
	for _, one := range w.disksOf("pvc-2") {
		if one.Labels["stowage-retained"] != "true" {
			t.Errorf("the disk in %s isn't labelled", one.Zone)
		}
	}
}

func TestAZoneWithoutRoomIsNamedAndTriedAgain(t *testing.T) {
	w := newWorld(t, func(options *gcemock.Options) { options.QuotaGb = 25 })
	on := w.open()
	withSnapshot(w, on)
	_, err := on.Provision(t.Context(), w.inEachZone("2"))
	// Not Exhausted: the scheduler would be asked for another node.
	w.mustBe(err, backend.NotReady, "making disk pvc-2 in zone europe-west3-", "a quota of project demo is used up")
	w.mustHaveOne("pvc-2")
	w.must(w.untilFinal(func() error { return on.Delete(t.Context(), "pvc-1") }))

	w.mustProvision(on, w.inEachZone("2"))

	w.mustBeIn("pvc-2", zoneA, zoneB)
}

func TestARefusalInOneZoneDoesNotHideWhatIsBeingMadeInAnother(t *testing.T) {
	for refusing, other := range map[string]string{zoneA: zoneB, zoneB: zoneA} {
		w := newWorld(t)
		withSnapshot(w, w.open())
		w.inProgressAtOnce()
		w.plans(func(request *http.Request) fate {
			if insertIn(request, refusing) {
				return missing
			}
			return served
		})
		w.inject(gcemock.Fault{Method: "disks.insert", Stuck: true})

		_, err := w.open().Provision(t.Context(), w.inEachZone("2"))

		w.mustBe(err, backend.InProgress, "pvc-2 in zone "+other)
		w.mustBe(w.open().Delete(t.Context(), "pvc-2"), backend.InProgress)
		w.removeFaults()
		w.plans(nil)
		w.must(w.untilFinal(func() error { return w.open().Delete(t.Context(), "pvc-2") }))
		w.mustBeIn("pvc-2")
	}
}

func TestADiskThatNothingShowsYetIsNotLeftBehindInItsZone(t *testing.T) {
	w := newWorld(t)
	withSnapshot(w, w.open())
	w.mustProvision(w.open(inZones(zoneA)), w.inEachZone("2"))
	w.inProgressAtOnce()
	w.inject(gcemock.Fault{Method: "disks.insert", Stuck: true})
	_, err := w.open().Provision(t.Context(), w.inEachZone("2"))
	w.mustBe(err, backend.InProgress)
	w.plans(hidingB)

	w.mustBe(w.open().Delete(t.Context(), "pvc-2"), backend.InProgress, "disk pvc-2 is being made in zone europe-west3-b")

	w.plans(nil)
	w.removeFaults()
	w.must(w.untilFinal(func() error { return w.open().Delete(t.Context(), "pvc-2") }))
	w.mustBeIn("pvc-2")
}

func TestDisksInEachZoneAreResumedOrUndoneWhereverACallWasCutOff(t *testing.T) {
	for when, becomes := range map[string]fate{"before": dropped, "after": unanswered} {
		for _, undone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, undone: %v", when, undone), func(t *testing.T) {
				through := false
				for nth := 1; !through; nth++ {
					w := newWorld(t)
					withSnapshot(w, w.open())
					plan, count := from(nth, becomes)
					w.plans(plan)
					request := w.inEachZone("2")
					_, err := w.provision(w.open(), request)
					through = err == nil && count() < nth
					w.plans(nil)
					fresh := w.openAs(w.newKind(thisCluster), "cloud")
					request.Unwanted = undone
					w.mustProvision(fresh, request)
					w.mustBeIn("pvc-2", zoneA, zoneB)
					for _, zone := range []string{zoneA, zoneB} {
						// Zone A has the disk of the snapshot, too.
						if begun := w.operations(zone, "insert"); begun > 2 || zone == zoneB && begun != 1 {
							t.Errorf("cut off at request %d, %d disks were begun in %s", nth, begun, zone)
						}
					}
					w.must(w.untilFinal(func() error { return fresh.Delete(t.Context(), "pvc-2") }))
					w.mustBeIn("pvc-2")
					if nth > 40 {
						t.Fatal("it takes more requests than it should")
					}
				}
			})
		}
	}
}

func TestDisksOfAnEarlierCallStayWhateverZonesTheBackendHasNow(t *testing.T) {
	w := newWorld(t)
	withSnapshot(w, w.open())
	w.mustProvision(w.open(), w.inEachZone("2"))
	for _, zones := range [][]string{{zoneA}, {zoneC}} {
		made := w.mustProvision(w.open(inZones(zones...)), w.inEachZone("2"))
		if zones := made.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values; len(zones) < 2 {
			t.Errorf("it is in %v", zones)
		}
	}
	on := w.open(inZones(zoneA))
	w.must(w.untilFinal(func() error { return on.Delete(t.Context(), "pvc-2") }))
	w.mustBeIn("pvc-2")
}

func TestDisksOfSnapshotsThatHadOneNameAreNoVolume(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.withDisk(on, "1")
	model := &compute.Snapshot{Name: "model", SourceDisk: "projects/" + project + "/zones/" + zoneA + "/disks/pvc-1"}
	request := w.inEachZone("2")
	request.Source.Snapshot = "projects/" + project + "/global/snapshots/model"
	w.putSnapshot(model)
	w.mustProvision(w.open(inZones(zoneA)), request)
	operation, err := w.compute.Snapshots.Delete(project, "model").Do()
	for err == nil && operation.Status != "DONE" {
		operation, err = w.compute.GlobalOperations.Wait(project, operation.Name).Do()
	}
	w.must(err)
	w.putSnapshot(model)

	_, err = w.provision(on, request)

	w.mustBe(err, backend.Conflict, "were made from different snapshots of one name: create the claim again")
	w.must(w.untilFinal(func() error { return on.Delete(t.Context(), "pvc-2") }))
	w.mustBeIn("pvc-2")
}

func TestADiskThatIsBeingDeletedIsTooLateToKeep(t *testing.T) {
	for status, going := range map[string]bool{cloud.DiskDeleting: true, cloud.DiskReady: false, cloud.DiskFailed: false, "CREATING": false} {
		if isGoing(&cloud.Disk{Disk: &compute.Disk{Status: status}}) != going {
			t.Errorf("one that is %s is kept: %v", status, going)
		}
	}
}

func TestADiskOfAPersonInOneZoneIsNamed(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withSnapshot(w, on)
	w.mustProvision(w.open(inZones(zoneA)), w.inEachZone("2"))
	w.put(zoneB, &compute.Disk{Name: "pvc-2", SizeGb: 10})
	request := w.inEachZone("2")

	for _, request.Unwanted = range []bool{false, true} {
		_, err := w.provision(on, request)
		w.mustBe(err, backend.Conflict, "zones/europe-west3-b/disks/pvc-2 isn't Stowage's")
	}
	w.must(w.untilFinal(func() error { return on.Delete(t.Context(), "pvc-2") }))

	if found := w.mustHaveOne("pvc-2"); cloud.NameOf(found.Zone) != zoneB {
		t.Errorf("left is %s", found.SelfLink)
	}
}

func TestAZoneThatLeftTheBackendIsNotForgottenWhileItsDiskIsMade(t *testing.T) {
	w := newWorld(t)
	withSnapshot(w, w.open())
	both := w.inEachZone("2")
	w.plans(func(request *http.Request) fate {
		if insertIn(request, zoneB) {
			return dropped
		}
		return served
	})
	if _, err := w.open().Provision(t.Context(), both); err == nil {
		t.Fatal("it is whole")
	}
	w.mustBeIn("pvc-2", zoneA)
	w.plans(nil)
	w.inProgressAtOnce()
	w.inject(gcemock.Fault{Method: "disks.insert", Stuck: true})
	_, err := w.open().Provision(t.Context(), both)
	w.mustBe(err, backend.InProgress)
	w.plans(hidingB)
	onlyA := w.open(inZones(zoneA))
	both.Unwanted = true
	_, _ = onlyA.Provision(t.Context(), both)

	w.mustBe(onlyA.Delete(t.Context(), "pvc-2"), backend.InProgress, "disk pvc-2 is being made in zone europe-west3-b")

	w.plans(nil)
	w.removeFaults()
	w.must(w.untilFinal(func() error { return onlyA.Delete(t.Context(), "pvc-2") }))
	w.mustBeIn("pvc-2")
}

func TestAZoneThatTheCloudDoesNotHaveIsNoReasonToKeepDisks(t *testing.T) {
	w := newWorld(t)
	withSnapshot(w, w.open())
	w.mustProvision(w.open(inZones(zoneA)), w.inEachZone("2"))
	wrong := w.open(inZones(zoneA, "europe-west9-z"))
	_, err := w.provision(wrong, w.inEachZone("2"))
	w.mustBe(err, backend.Invalid)
	var place string
	w.must(w.untilFinal(func() (err error) { place, err = wrong.Retain(t.Context(), "pvc-2"); return err }))
	for range 2 {
		w.must(w.untilFinal(func() error { return wrong.Delete(t.Context(), "pvc-2") }))
	}
	w.mustBeIn("pvc-2")
	if !strings.Contains(place, zoneA) {
		t.Errorf("it was kept at %q", place)
	}
}

func TestANodeWhoseZoneLeftTheBackendDoesNotCutAVolumeShort(t *testing.T) {
	w := newWorld(t)
	withSnapshot(w, w.open())
	w.mustProvision(w.open(inZones(zoneA)), w.inEachZone("2"))

	w.mustProvision(w.open(inZones(zoneB)), w.inEachZone("2"))

	w.mustBeIn("pvc-2", zoneA, zoneB)
}

func TestAListThatShowsOneOfSeveralZonesIsCompleted(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withSnapshot(w, on)
	w.mustProvision(on, w.inEachZone("2"))
	c, err := w.kind.signIn(t.Context(), on.spec)
	w.must(err)
	listed, err := c.DisksNamed(t.Context(), "pvc-2")
	w.must(err)

	whole, err := c.Complete(t.Context(), "pvc-2", listed[1:], place.Zones(owner.ZonesOf(listed[1:], nil)...)...)

	if err != nil || len(whole) != 2 || whole[0].Path() == whole[1].Path() {
		t.Errorf("it is %v, %v", whole, err)
	}
}

func TestWhatDisksInEachZoneCannotBeIsRefused(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withSnapshot(w, on)
	for says, change := range map[string]func(*backend.Request){
		"ask for ReadOnlyMany alone":                func(r *backend.Request) { r.AccessModes = append(r.AccessModes, corev1.ReadWriteOnce) },
		"restore a VolumeSnapshot instead":          func(r *backend.Request) { r.Source = copying("2").Source },
		"a new disk is empty":                       func(r *backend.Request) { r.Source = nil },
		"and for one with replicas":                 func(r *backend.Request) { r.Parameters["replication-type"] = "regional-pd" },
		"write true or false":                       func(r *backend.Request) { r.Parameters["enable-multi-zone-provisioning"] = "yes" },
		"no copy was begun: create the claim again": func(r *backend.Request) { r.Source = &backend.Source{} },
		"none of the zones of backend cloud": func(r *backend.Request) {
			r.Node, r.Topologies = nil, []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: corev1.LabelTopologyZone, Values: []string{"europe-west3-x"}},
			}}}
		},
	} {
		request := w.inEachZone("2")
		change(&request)
		_, err := w.provision(on, request)
		w.mustBe(err, backend.Invalid, says)
	}
	w.mustBeIn("pvc-2")
	elsewhere := w.inEachZone("2")
	elsewhere.Node = nodeNamed("node-c", zoneC)
	_, err := w.provision(on, elsewhere)
	w.mustBe(err, backend.WrongNode, "backend cloud makes disks in europe-west3-a, europe-west3-b only")
}

func TestDisksInEachZoneStayAlike(t *testing.T) {
	w := newWorld(t)
	on := w.open(w.tunable)
	withSnapshot(w, on)
	request := w.inEachZone("2")
	request.Parameters["type"], request.Capacity = "pd-ssd", resource.MustParse("64Gi")
	w.mustProvision(on, request)

	_, err := on.Expand(t.Context(), backend.ExpandRequest{ID: "pvc-2", Capacity: resource.MustParse("900Gi")})
	w.mustBe(err, backend.Invalid, "volume pvc-2 has disks in several zones, which pods can only read: it can't be expanded")
	err = on.Modify(t.Context(), "pvc-2", backend.Attributes{Class: "fast", Parameters: map[string]string{"iops": "5000"}})
	w.mustBe(err, backend.Invalid, "it can't be given another VolumeAttributesClass")
	clone := copying("3")
	clone.Source = &backend.Source{ID: "pvc-2", Claim: request.Claim}
	_, err = w.provision(on, clone)
	w.mustBe(err, backend.Invalid, "it can't be copied: restore the VolumeSnapshot")

	of := backend.SnapshotRequest{ID: "snapshot-b", Owner: "b", Volume: "pvc-2"}
	w.must(w.untilFinal(func() error { return untilReady(on.CreateSnapshot(t.Context(), of)) }))
}
