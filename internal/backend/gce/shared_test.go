package gce

import (
	"reflect"
	"testing"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/newdisk"
)

// shared asks for a device of a type that is used in one way.
func shared(uid, diskType string, modes ...corev1.PersistentVolumeAccessMode) backend.Request {
	request := ofClass(uid, map[string]string{"type": diskType})
	request.VolumeMode, request.AccessModes = corev1.PersistentVolumeBlock, modes
	request.Node = nodeNamed("node-1", zoneA)
	return request
}

// hyperNodes are instances that Hyperdisks can be attached to.
func (w *world) hyperNodes() []backend.NodeIdentity {
	w.Helper()
	nodes := []backend.NodeIdentity{node("hyper-1"), node("hyper-2")}
	for _, one := range nodes {
		w.must(w.mock.EnsureInstance(project, zoneA, one.Name, "c3-standard-4"))
	}
	return nodes
}

// attachAs attaches a disk for a volume object with a mode and access modes.
func (w *world) attachAs(on *gceBackend, id string, to backend.NodeIdentity, mode corev1.PersistentVolumeMode, modes ...corev1.PersistentVolumeAccessMode) error {
	w.Helper()
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{VolumeMode: &mode, AccessModes: modes}}
	return w.untilFinal(func() error {
		_, err := on.Attach(w.Context(), backend.AttachRequest{ID: id, Node: to, Volume: pv})
		return err
	})
}

func TestADiskForManyWritersIsAttachedToSeveralInstances(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	made := w.mustProvision(on, shared("1", balanced, corev1.ReadWriteMany))
	if disk := w.mustHaveOne("pvc-1"); disk.AccessMode != cloud.WrittenByMany {
		t.Errorf("its access mode is %q", disk.AccessMode)
	}
	nodes := w.hyperNodes()
	for _, one := range append(nodes, nodes[0]) {
		w.must(w.attachAs(on, made.Handle, one, corev1.PersistentVolumeBlock, corev1.ReadWriteMany))
	}
	if users := w.users("pvc-1"); len(users) != 2 {
		t.Errorf("its users are %v", users)
	}

	w.mustProvision(on, shared("2", balanced, corev1.ReadWriteOnce))
	w.mustAttach(on, "pvc-2", nodes[0], false)
	_, err := w.attach(on, "pvc-2", nodes[1], false)
	w.mustBe(err, backend.Conflict, "it can be written on one only")
	err = w.attachAs(on, "pvc-1", node("node-1"), corev1.PersistentVolumeBlock, corev1.ReadWriteMany)
	w.mustBe(err, backend.Invalid, "instance node-1 can't have disk", "of type hyperdisk-balanced: place the pod on a node whose machine type can")
}

func TestASharedDiskIsNotTakenFromAZoneThatIsDown(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	request := shared("1", replicatedHyperdisk, corev1.ReadWriteMany)
	request.Parameters["replication-type"] = "regional-pd"
	w.mustProvision(on, request)
	a, b := w.hyperNodes()[0], nodeAt(zoneB, "hyper-b")
	w.must(w.mock.EnsureInstance(project, zoneB, "hyper-b", "c3-standard-4"))
	w.must(w.attachAs(on, "pvc-1", a, corev1.PersistentVolumeBlock, corev1.ReadWriteMany))
	w.mock.SetDown(zoneA, true)

	w.mustBe(on.Detach(t.Context(), "pvc-1", a), backend.Unavailable, "is down")
	w.must(w.attachAs(on, "pvc-1", b, corev1.PersistentVolumeBlock, corev1.ReadWriteMany))
	if users := w.users("pvc-1"); len(users) != 2 {
		t.Errorf("it is attached to %v", users)
	}
}

func TestAFileSystemIsNotAttachedToTwoMachinesThoughItsDiskCouldBe(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.mustProvision(on, shared("1", balanced, corev1.ReadWriteMany))
	nodes := w.hyperNodes()
	for _, modes := range [][]corev1.PersistentVolumeAccessMode{{corev1.ReadWriteMany}, {corev1.ReadWriteOnce, corev1.ReadOnlyMany}} {
		err := w.attachAs(on, "pvc-1", nodes[0], corev1.PersistentVolumeFilesystem, modes...)
		w.mustBe(err, backend.Invalid, "has access modes for several nodes", "correct its volumeMode or its accessModes")
	}
	w.must(w.attachAs(on, "pvc-1", nodes[0], corev1.PersistentVolumeFilesystem, corev1.ReadWriteOnce))
	w.mustBe(w.attachAs(on, "pvc-1", nodes[1], corev1.PersistentVolumeFilesystem, corev1.ReadWriteOnce), backend.Conflict, "it can be written on one only")
	w.mustBe(w.attachAs(on, "pvc-1", nodes[1], corev1.PersistentVolumeBlock, corev1.ReadWriteOnce), backend.Conflict, "it can be written on one only")
}

func TestAClaimThatCanHaveNoDiskOfItsClassMakesNoneWhenItGoes(t *testing.T) {
	w := newWorld(t)
	request := shared("1", "pd-ssd", corev1.ReadWriteMany)
	request.Unwanted = true
	_, err := w.provision(w.open(), request)
	w.mustBe(err, backend.Invalid, "can't be ReadWriteMany")
	if w.has("pvc-1") {
		t.Error("a disk was made")
	}
}

func TestADiskIsSharedOnlyWhereItsTypeCanBe(t *testing.T) {
	w := newWorld(t)
	for uid, test := range map[string]struct{ diskType, says string }{
		"1": {"pd-ssd", "a disk of type pd-ssd can't be ReadWriteMany"},
		"2": {extreme, "makes no such disk of type hyperdisk-extreme with the access mode READ_WRITE_MANY"},
	} {
		_, err := w.provision(w.open(), shared(uid, test.diskType, corev1.ReadWriteMany))
		w.mustBe(err, backend.Invalid, test.says)
		if w.has("pvc-" + uid) {
			t.Errorf("disk %s was made", uid)
		}
	}
}

func TestAFileSystemIsNotOfferedToSeveralWriters(t *testing.T) {
	w := newWorld(t)
	request := shared("1", balanced, corev1.ReadWriteMany)
	w.must(w.open().Capabilities().Check(request))
	request.VolumeMode = corev1.PersistentVolumeFilesystem
	w.mustBe(w.open().Capabilities().Check(request), backend.Invalid, "ReadWriteMany is for block devices only: ask for volumeMode Block")
}

func TestWhatIsRestoredForReadersIsNeverWrittenAgain(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.mustProvision(on, shared("1", "hyperdisk-ml", corev1.ReadWriteOnce))
	w.must(w.untilFinal(func() error { return w.snapshot(on) }))

	readers := w.restoring("2")
	readers.Capacity, readers.Node = shared("1", "").Capacity, nodeNamed("node-1", zoneA)
	readers.Parameters, readers.AccessModes = map[string]string{"type": "hyperdisk-ml"}, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	w.mustProvision(on, readers)
	if disk := w.mustHaveOne("pvc-2"); disk.AccessMode != cloud.ReadByMany {
		t.Errorf("its access mode is %q", disk.AccessMode)
	}
	for _, one := range w.hyperNodes() {
		w.mustAttach(on, "pvc-2", one, true)
	}

	wrong := w.restoring("3")
	wrong.Capacity, wrong.Node, wrong.AccessModes = readers.Capacity, readers.Node, readers.AccessModes
	wrong.Parameters = map[string]string{"type": balanced}
	_, err := w.provision(on, wrong)
	w.mustBe(err, backend.Invalid, "with the access mode READ_ONLY_MANY", "ReadOnlyMany has hyperdisk-ml")
}

func TestAnUndoOfASharedDiskIsTheSameRequest(t *testing.T) {
	w := newWorld(t)
	request := shared("1", balanced, corev1.ReadWriteMany)
	plan := newdisk.Draft{Request: request, Zone: zoneA}
	disk := func(unwanted bool) *compute.Disk {
		on := w.open()
		plan.Request.Unwanted = unwanted
		var err error
		plan.Class, err = on.maker().ClassOf(plan.Request, plan.From)
		w.must(err)
		c, err := w.kind.signIn(t.Context(), on.spec)
		w.must(err)
		made, err := on.maker().Describe(t.Context(), c, plan)
		w.must(err)
		return made
	}
	if wanted, again := disk(false), disk(true); wanted.AccessMode != cloud.WrittenByMany || !reflect.DeepEqual(again, wanted) {
		t.Errorf("they are %+v and %+v", wanted, again)
	}
}
