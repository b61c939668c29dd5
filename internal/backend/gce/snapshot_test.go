package gce

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

// handleOfA is the handle of the snapshot of VolumeSnapshot a.
const handleOfA = "projects/" + project + "/global/snapshots/snapshot-a"

// ofA asks for the snapshot of VolumeSnapshot a.
func ofA() backend.SnapshotRequest {
	return backend.SnapshotRequest{ID: "snapshot-a", Owner: "a", Volume: "pvc-1"}
}

func untilReady(made *backend.Snapshot, err error) error {
	if err == nil && !made.Ready {
		return backend.InProgress.Errorf("it is uploaded")
	}
	return err
}

// snapshot makes it, or says how far it is.
func (w *world) snapshot(on *gceBackend) error {
	made, err := on.CreateSnapshot(w.Context(), ofA())
	return untilReady(made, err)
}

// restoring asks for a volume with the content of the snapshot.
func (w *world) restoring(uid string) backend.Request {
	request := backendtest.Request(uid)
	request.Node, request.Source = nodeNamed("node-1", zoneA), &backend.Source{Snapshot: handleOfA}
	return request
}

func withSnapshot(w *world, on *gceBackend) {
	withVolume(w, on)
	w.must(w.untilFinal(func() error { return w.snapshot(on) }))
}

// snapshots are those of the project.
func (w *world) snapshots() []*compute.Snapshot {
	w.Helper()
	list, err := w.compute.Snapshots.List(project).Do()
	w.must(err)
	return list.Items
}

// putSnapshot makes a snapshot that isn't Stowage's.
func (w *world) putSnapshot(foreign *compute.Snapshot) {
	w.Helper()
	operation, err := w.compute.Disks.CreateSnapshot(project, zoneA, "pvc-1", foreign).Do()
	w.ended(zoneA, operation, err)
}

func TestASnapshotIsRecordedAndLabelled(t *testing.T) {
	w := newWorld(t)
	on := w.open(func(spec *stowagev1alpha1.GCEBackend) {
		spec.Labels = map[string]stowagev1alpha1.GCELabelValue{"team": "shop"}
	})
	withVolume(w, on)
	request := ofA()
	request.Parameters = map[string]string{"storage-locations": "europe-west3", "labels": "tier=gold"}
	w.must(w.untilFinal(func() error { made, err := on.CreateSnapshot(t.Context(), request); return untilReady(made, err) }))

	made := w.snapshots()[0]

	if made.Labels["team"] != "shop" || made.Labels["tier"] != "gold" || made.Labels["stowage-backend"] != "cloud" || made.StorageLocations[0] != "europe-west3" {
		t.Errorf("it is %+v", made)
	}
	if !strings.Contains(made.Description, `"createdBy":"stowage.dev"`) || !strings.Contains(made.Description, `"volume":"pvc-1"`) {
		t.Errorf("it is described as %s", made.Description)
	}
}

func TestASnapshotHasItsHandleBeforeItIsUploaded(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withVolume(w, on)
	w.inProgressAtOnce()
	w.inject(gcemock.Fault{Method: "disks.createSnapshot", Count: 1, Stuck: true})
	_, err := on.CreateSnapshot(t.Context(), ofA())
	w.mustBe(err, backend.InProgress)

	made, err := on.CreateSnapshot(t.Context(), ofA())

	if err != nil || made.Handle != handleOfA || made.Ready || time.Since(made.Created) > time.Minute || made.RestoreSize.Cmp(resource.MustParse("10Gi")) != 0 {
		t.Errorf("it is %+v (%v)", made, err)
	}
	_, err = on.Provision(t.Context(), w.restoring("2"))
	w.mustBe(err, backend.Unavailable, "isn't ready: it is tried again")
	w.removeFaults()
	w.must(w.untilFinal(func() error { return w.snapshot(on) }))
}

func TestASnapshotThatWasBegunIsFoundWhateverItsClassSaysNow(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withSnapshot(w, on)
	request := ofA()
	request.Parameters = map[string]string{"color": "blue"}
	if made, err := on.CreateSnapshot(t.Context(), request); err != nil || made.Handle != handleOfA {
		t.Errorf("it is %+v (%v)", made, err)
	}
}

func TestForeignSnapshotsAreLeftAlone(t *testing.T) {
	ours := func(w *world, cluster, name string) string {
		other := w.openAs(w.newKind("another-cluster"), "cloud")
		if cluster == "" {
			other = w.openAs(w.kind, name)
		}
		wanted, err := other.newSnapshot(ofA())
		w.must(err)
		return wanted.Description
	}
	for name, describe := range map[string]func(w *world) string{
		"of a person":        func(*world) string { return "before the upgrade" },
		"of another cluster": func(w *world) string { return ours(w, "another", "cloud") },
		"of another backend": func(w *world) string { return ours(w, "", "other") },
		"with another's id":  func(w *world) string { return strings.ReplaceAll(ours(w, "", "cloud"), "snapshot-a", "snapshot-b") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.open()
			withVolume(w, on)
			w.putSnapshot(&compute.Snapshot{Name: "snapshot-a", Description: describe(w)})

			_, err := on.CreateSnapshot(t.Context(), ofA())
			w.mustBe(err, backend.Conflict, "it is left alone")
			w.mustBe(on.DeleteSnapshot(t.Context(), handleOfA), backend.Conflict, "it is left alone")

			if found, err := on.FindSnapshot(t.Context(), handleOfA); err != nil || !found.Ready || found.Made || len(w.snapshots()) != 1 {
				t.Errorf("a person names it: %+v (%v)", found, err)
			}
		})
	}
}

func TestHandlesThatAreNoSnapshotsOfTheProjectAreRefused(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	for _, handle := range []string{"", "snapshot-a", "projects/other/global/snapshots/snapshot-a", handleOfA + "/../x", "projects/" + project + "/global/snapshots/"} {
		_, err := on.FindSnapshot(t.Context(), handle)
		w.mustBe(err, backend.Invalid)
		w.mustBe(on.DeleteSnapshot(t.Context(), handle), backend.Invalid)
		request := w.restoring("2")
		request.Source.Snapshot = handle + "?"
		_, err = on.Provision(t.Context(), request)
		w.mustBe(err, backend.Invalid)
	}
}

func TestASnapshotIsMadeOfADiskToWhichSomethingElseIsDone(t *testing.T) {
	expanded := backend.ExpandRequest{ID: "pvc-1", Capacity: resource.MustParse("20Gi")}
	for name, test := range map[string]struct {
		method string
		do     func(w *world, on *gceBackend) error
	}{
		"it grows": {"disks.resize", func(w *world, on *gceBackend) error {
			_, err := on.Expand(w.Context(), expanded)
			return err
		}},
		"it is attached": {"instances.attachDisk", func(w *world, on *gceBackend) error {
			_, err := on.Attach(w.Context(), backend.AttachRequest{ID: "pvc-1", Node: node("node-1")})
			return err
		}},
		"it is detached": {"instances.detachDisk", func(w *world, on *gceBackend) error { return on.Detach(w.Context(), "pvc-1", node("node-1")) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.open()
			withVolume(w, on)
			if test.method == "instances.detachDisk" {
				w.mustAttach(on, "pvc-1", node("node-1"), false)
			}
			w.inProgressAtOnce()
			w.inject(gcemock.Fault{Method: test.method, Stuck: true})
			w.mustBe(test.do(w, on), backend.InProgress)
			if err := w.snapshot(on); err != nil && !backend.Unfinished(err) && !errors.Is(err, backend.NotReady) {
				t.Errorf("in the middle: %v", err)
			}

			w.removeFaults()
			w.must(w.untilFinal(func() error { return test.do(w, on) }))
			w.must(w.untilFinal(func() error { return w.snapshot(on) }))

			w.mustProvision(on, func() backend.Request {
				request := w.restoring("2")
				request.Capacity = resource.MustParse("20Gi")
				return request
			}())
		})
	}
}

func TestABackendKnowsWhichSnapshotsItMade(t *testing.T) {
	w := newWorld(t)
	withSnapshot(w, w.open())
	for name, made := range map[string]bool{"cloud": true, "other": false} {
		if found, err := w.openAs(w.kind, name).FindSnapshot(t.Context(), handleOfA); err != nil || found.Made != made {
			t.Errorf("backend %s finds %+v (%v)", name, found, err)
		}
	}
}

// beginRestore begins a restore that meets a fault.
func (w *world) beginRestore(on *gceBackend, fault gcemock.Fault) {
	w.Helper()
	withSnapshot(w, on)
	w.inProgressAtOnce()
	w.inject(fault)
	if _, err := on.Provision(w.Context(), w.restoring("2")); err == nil {
		w.Fatal("it is made at once")
	}
}

func (w *world) mustDeleteSnapshot(on *gceBackend) {
	w.Helper()
	w.must(w.untilFinal(func() error { return on.DeleteSnapshot(w.Context(), handleOfA) }))
}

// mustBecomeReady waits until a disk is made.
func (w *world) mustBecomeReady(id string) {
	w.Helper()
	w.must(w.untilFinal(func() error {
		if disk := w.mustHaveOne(id); disk.Status != cloud.DiskReady {
			return backend.InProgress.Errorf("disk %s is %s", id, disk.Status)
		}
		return nil
	}))
}

func TestADiskThatWasRestoredIsFoundThoughItsSnapshotIsDeleted(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.beginRestore(on, gcemock.Fault{Method: "disks.insert", Count: 1, Lost: true})
	w.mustBecomeReady("pvc-2")
	w.mustDeleteSnapshot(on)

	w.mustProvision(w.openAs(w.newKind(thisCluster), "cloud"), w.restoring("2"))

	if disk := w.mustHaveOne("pvc-2"); cloud.PathOf(disk.SourceSnapshot) != handleOfA {
		t.Errorf("it is %+v", disk)
	}
}

func TestARestoreWhoseSnapshotIsDeletedHasAnErrorOnceItsDiskIsNotMade(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.beginRestore(on, gcemock.Fault{Method: "disks.insert", Stuck: true})
	w.mustDeleteSnapshot(on)
	// Google doesn't show a disk before its operation runs; this cloud does.
	w.plans(func(call *http.Request) fate {
		switch {
		case strings.HasSuffix(call.URL.Path, "/aggregated/disks"):
			return outdated
		case strings.HasSuffix(call.URL.Path, "/disks/pvc-2"):
			return missing
		}
		return served
	})
	_, err := on.Provision(t.Context(), w.restoring("2"))
	w.mustBe(err, backend.InProgress, "making disk pvc-2 in zone europe-west3-a goes on")
	w.plans(nil)
	_, err = on.Provision(t.Context(), w.restoring("2"))
	w.mustBe(err, backend.InProgress, "is CREATING")

	w.removeFaults()

	_, err = w.provision(on, w.restoring("2"))
	w.mustBe(err, backend.Invalid, "is gone, and no empty disk is made in place of its copy")
	if w.has("pvc-2") {
		t.Error("there is a disk")
	}
}

func TestASnapshotIsRestoredInTheZoneOfThePod(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withSnapshot(w, on)
	if source := w.mustHaveOne("pvc-1"); cloud.NameOf(source.Zone) != zoneA {
		t.Fatalf("the disk of the snapshot is in %s", source.Zone)
	}
	request := w.restoring("2")
	request.Node = nodeNamed("node-b", zoneB)

	w.mustProvision(on, request)

	if disk := w.mustHaveOne("pvc-2"); cloud.NameOf(disk.Zone) != zoneB || cloud.PathOf(disk.SourceSnapshot) != handleOfA {
		t.Errorf("it is %+v", disk)
	}
}

func TestARestoreToLessThanTheDiskHadIsRefused(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	request := backendtest.Request("1")
	request.Capacity = resource.MustParse("20Gi")
	w.mustProvision(on, request)
	w.must(w.untilFinal(func() error { return w.snapshot(on) }))

	_, err := w.provision(on, w.restoring("2"))

	w.mustBe(err, backend.Invalid, "is of a disk with 20Gi: ask for at least as much")
	if w.has("pvc-2") {
		t.Error("a disk was made")
	}
}

func TestADiskThatWasMadeOfSomethingElseIsNoRestore(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withSnapshot(w, on)
	w.put(zoneA, w.ourDisk(on, "2", 10))
	_, err := w.provision(on, w.restoring("2"))
	w.mustBe(err, backend.Conflict, "not from what the claim names")
}

func TestASnapshotOfADiskThatAPersonMade(t *testing.T) {
	w := newWorld(t)
	w.withExisting()
	request := ofA()
	request.Volume = legacy
	_, err := w.open().CreateSnapshot(t.Context(), request)
	w.mustBe(err, backend.Conflict)
	on := w.open(allowing)
	w.must(w.untilFinal(func() error { made, err := on.CreateSnapshot(t.Context(), request); return untilReady(made, err) }))
	if len(w.snapshots()) != 1 {
		t.Errorf("there are %d", len(w.snapshots()))
	}
}

// TestASnapshotIsRetainedWhateverGoesWrong is about a call that has no request id: a repeat begins another operation,
// unless it sees the label.
func TestASnapshotIsRetainedWhateverGoesWrong(t *testing.T) {
	for name, test := range map[string]struct {
		fault gcemock.Fault
		kind  backend.ErrorKind
	}{
		"not there for a while": {gcemock.Fault{Status: http.StatusServiceUnavailable}, backend.Unavailable},
		"a lost answer":         {gcemock.Fault{Lost: true}, ""},
		"labels of another":     {gcemock.Fault{Status: http.StatusPreconditionFailed, Reason: "conditionNotMet"}, backend.InProgress},
		"an operation fails":    {gcemock.Fault{Operation: "INTERNAL_ERROR"}, backend.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.open()
			withSnapshot(w, on)
			test.fault.Method, test.fault.Count = "snapshots.setLabels", 1
			w.inject(test.fault)
			w.mustBe(on.RetainSnapshot(t.Context(), handleOfA), test.kind)

			w.must(w.untilFinal(func() error { return w.open().RetainSnapshot(t.Context(), handleOfA) }))

			held, err := on.List(t.Context())
			w.must(err)
			if len(held) != 2 || held[1].ID != handleOfA || !held[1].Retained {
				t.Errorf("it lists %+v", held)
			}
		})
	}
}

func TestASnapshotOfAnotherClusterIsNotRetained(t *testing.T) {
	w := newWorld(t)
	withSnapshot(w, w.open())
	other := w.openAs(w.newKind("another"), "cloud")
	w.mustBe(other.RetainSnapshot(t.Context(), handleOfA), backend.Conflict, "belongs to another cluster")
	held, err := other.List(t.Context())
	w.must(err)
	if len(held) != 0 {
		t.Errorf("it lists %+v", held)
	}
}

func TestARestoreToTheSmallestDiskIsNotCalledTooSmall(t *testing.T) {
	w := newWorld(t)
	withSnapshot(w, w.open())
	w.inject(gcemock.Fault{Method: "disks.insert", Count: 1, Status: http.StatusBadRequest, Reason: "invalid", Message: "no luck"})
	_, err := w.open().Provision(t.Context(), w.restoring("2")) // of 1Gi, which becomes 10Gi as the snapshot
	w.mustBe(err, backend.Invalid, "no luck")
}
