package gce

import (
	"reflect"
	"testing"

	"google.golang.org/api/compute/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

func TestADiskOfAnotherIsNeverTouched(t *testing.T) {
	for name, test := range map[string]struct {
		disk func(*world, *gceBackend) *compute.Disk
		says string
	}{
		"one without an owner": {func(*world, *gceBackend) *compute.Disk { return &compute.Disk{SizeGb: 10} }, "isn't Stowage's"},
		"one that others described": {func(*world, *gceBackend) *compute.Disk {
			return &compute.Disk{SizeGb: 10, Description: `{"kubernetes.io/created-for/pv/name":"pvc-1"}`}
		}, "isn't Stowage's"},
		"one with only our labels": {func(w *world, on *gceBackend) *compute.Disk {
			disk := w.ourDisk(on, "1", 10)
			disk.Description = ""
			return disk
		}, "isn't Stowage's"},
		"another cluster's": {func(w *world, _ *gceBackend) *compute.Disk {
			return w.ourDisk(w.openAs(w.newKind(otherCluster), "cloud"), "1", 10)
		}, "belongs to another cluster"},
		"another backend's": {func(w *world, _ *gceBackend) *compute.Disk {
			return w.ourDisk(w.openAs(w.kind, "archive"), "1", 10)
		}, `belongs to backend "archive"`},
		"one described as another volume": {func(w *world, on *gceBackend) *compute.Disk { return w.ourDisk(on, "2", 10) }, "doesn't fit"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.open()
			foreign := test.disk(w, on)
			foreign.Name = "pvc-1"
			w.put(zoneA, foreign)
			operation, err := w.compute.Instances.AttachDisk(project, zoneA, "node-1", &compute.AttachedDisk{
				Source: "projects/" + project + "/zones/" + zoneA + "/disks/pvc-1", DeviceName: "pvc-1",
			}).Do()
			w.ended(zoneA, operation, err)
			before := w.mustHaveOne("pvc-1")

			for call, err := range everyCall(t, on) {
				if backend.KindOf(err) != backend.Conflict {
					t.Errorf("%s answers %v", call, err)
					continue
				}
				w.mustBe(err, backend.Conflict, test.says, "it is left alone")
			}
			if after := w.mustHaveOne("pvc-1"); !reflect.DeepEqual(before, withServer(after, before)) {
				t.Errorf("it was %+v, and is %+v", before, after)
			}
			if held, err := on.List(t.Context()); err != nil || len(held) > 0 {
				t.Errorf("it is listed: %v %v", held, err)
			}
			if attached, err := on.Attachments(t.Context()); err != nil || len(attached) > 0 {
				t.Errorf("it is listed: %v %v", attached, err)
			}
		})
	}
}

// everyCall makes each call about the volume pvc-1.
func everyCall(t *testing.T, on *gceBackend) map[string]error {
	t.Helper()
	errs := map[string]error{}
	_, errs["Provision"] = on.Provision(t.Context(), backendtest.Request("1"))
	_, errs["Expand"] = on.Expand(t.Context(), backend.ExpandRequest{ID: "pvc-1", Capacity: resource.MustParse("20Gi")})
	_, errs["Retain"] = on.Retain(t.Context(), "pvc-1")
	_, errs["Attach"] = on.Attach(t.Context(), backend.AttachRequest{ID: "pvc-1", Node: node("node-1")})
	errs["Detach"] = on.Detach(t.Context(), "pvc-1", node("node-1"))
	errs["Delete"] = on.Delete(t.Context(), "pvc-1")
	return errs
}

func withServer(disk, of *compute.Disk) *compute.Disk {
	disk.ServerResponse = of.ServerResponse
	return disk
}

func TestAnInvalidIDIsNeverRead(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	for _, id := range []string{"", "boot", "pvc-1/../boot", `pvc-" OR name = "boot`, "pvc-UPPER", "pvc-"} {
		if err := on.Delete(t.Context(), id); backend.KindOf(err) != backend.Conflict {
			t.Errorf("Delete %q: %v", id, err)
		}
		// Attach refuses it: nothing is attached by it.
		w.must(on.Detach(t.Context(), id, node("node-1")))
	}
	request := backendtest.Request("1")
	request.ID = "pvc-1-x"
	_, err := on.Provision(t.Context(), request)
	w.mustBe(err, backend.Conflict, "isn't that of a volume of the claim with uid 1")
}

func TestADiskThatIsTooSmallIsNotTheClaims(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.put(zoneA, w.ourDisk(on, "1", 10))
	request := backendtest.Request("1")
	request.Capacity = resource.MustParse("20Gi")
	_, err := on.Provision(t.Context(), request)
	w.mustBe(err, backend.Conflict, "has 10Gi, less than the 20Gi asked for")
}

func TestOwnAndForeignDisksAreDistinguished(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.put(zoneA, &compute.Disk{Name: "pvc-1", SizeGb: 10})
	w.put(zoneB, w.ourDisk(on, "1", 10))
	w.put(zoneC, w.ourDisk(on, "1", 10))
	if held, err := on.List(t.Context()); err != nil || len(held) != 1 {
		t.Errorf("it lists %v, %v", held, err)
	}
	w.must(w.untilFinal(func() error { return on.Delete(t.Context(), "pvc-1") }))
	if zone := cloud.NameOf(w.mustHaveOne("pvc-1").Zone); zone != zoneA {
		t.Errorf("the one that is left is in zone %s", zone)
	}
	w.mustBe(on.Delete(t.Context(), "pvc-1"), backend.Conflict, "it is left alone")
}
