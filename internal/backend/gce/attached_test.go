package gce

import (
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

func (w *world) isAttached(on *gceBackend, id string, to backend.NodeIdentity) (is bool) {
	w.Helper()
	w.must(w.untilFinal(func() (err error) { is, err = on.IsAttached(w.Context(), id, to); return err }))
	return is
}

func TestAnAttachOrDetachInProgressIsReported(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.inProgressAtOnce()
	for _, method := range []string{"instances.attachDisk", "instances.detachDisk"} {
		w.inject(gcemock.Fault{Method: method, Count: 1, Stuck: true})
		if method == "instances.attachDisk" {
			_, err := on.Attach(t.Context(), backend.AttachRequest{ID: id, Node: node("node-1")})
			w.mustBe(err, backend.InProgress)
		} else {
			w.mustBe(on.Detach(t.Context(), id, node("node-1")), backend.InProgress)
		}
		other := w.openAs(w.newKind(thisCluster), "cloud")
		_, err := other.IsAttached(t.Context(), id, node("node-1"))
		w.mustBe(err, backend.InProgress, "at instance node-1 goes on")
		w.removeFaults()
		if is := w.isAttached(other, id, node("node-1")); is != (method == "instances.attachDisk") {
			t.Errorf("after %s it is attached: %t", method, is)
		}
	}
}

func TestADiskIsFoundAtItsInstanceByNameWhateverItsLabels(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.mustAttach(on, id, node("node-1"), false)
	has := w.mustHaveOne(id)
	operation, err := w.compute.Disks.SetLabels(project, zoneA, id, &compute.ZoneSetLabelsRequest{
		Labels: map[string]string{"team": "a"}, LabelFingerprint: has.LabelFingerprint,
	}).Do()
	w.ended(zoneA, operation, err)
	if attached, err := on.Attachments(t.Context()); err != nil || len(attached) > 0 {
		t.Fatalf("it is listed: %v, %v", attached, err)
	}
	if !w.isAttached(on, id, node("node-1")) {
		t.Error("it is not found")
	}
}

func TestARecreatedInstanceHasNoDisks(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.mustAttach(on, id, node("node-1"), false)
	operation, err := w.compute.Instances.Delete(project, zoneA, "node-1").Do()
	w.ended(zoneA, operation, err)
	w.must(w.mock.EnsureInstance(project, zoneA, "node-1", "e2-standard-2"))
	if w.isAttached(on, id, node("node-1")) {
		t.Error("it is attached")
	}
}
