package gce

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// copying asks for a copy of volume 1.
func copying(uid string) backend.Request {
	request := backendtest.Request(uid)
	request.Source = &backend.Source{ID: "pvc-1", Claim: backendtest.Request("1").Claim}
	return request
}

func TestACopyHasTheZoneTheTypeAndTheSizeOfItsSource(t *testing.T) {
	w := newWorld(t)
	source := backendtest.Request("1")
	source.Node, source.Capacity = nodeNamed("node-b", zoneB), resource.MustParse("20Gi")
	w.mustProvision(w.open(ofType("pd-ssd")), source)

	made := w.mustProvision(w.open(), copying("2"))

	disk := w.mustHaveOne("pvc-2")
	if cloud.NameOf(disk.Zone) != zoneB || cloud.NameOf(disk.Type) != "pd-ssd" || disk.SizeGb != 20 || !strings.HasSuffix(disk.SourceDisk, "/pvc-1") {
		t.Errorf("it is %+v", disk)
	}
	if made.Capacity.Cmp(resource.MustParse("20Gi")) != 0 {
		t.Errorf("it has %s", made.Capacity.String())
	}
}

func TestACopyIsNotMadeWhereItsSourceIsNot(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withVolume(w, on)
	elsewhere := copying("2")
	elsewhere.Node = nodeNamed("node-b", zoneB)
	_, err := w.provision(on, elsewhere)
	w.mustBe(err, backend.WrongNode, "is in zone "+zoneA+", and so is its copy")

	forbidden := copying("2")
	forbidden.Topologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: []string{zoneB}},
	}}}
	_, err = w.provision(on, forbidden)
	w.mustBe(err, backend.Invalid, "isn't within the allowedTopologies")
	if w.has("pvc-2") {
		t.Error("a disk was made")
	}
}

func TestADiskOfAnotherBackendIsNotCopied(t *testing.T) {
	w := newWorld(t)
	withVolume(w, w.openAs(w.kind, "other"))
	_, err := w.provision(w.open(), copying("2"))
	w.mustBe(err, backend.Conflict, "belongs to backend")
}
