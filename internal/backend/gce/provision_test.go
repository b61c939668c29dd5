package gce

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/diskclass"
	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

func TestADiskRecordsItsOwner(t *testing.T) {
	w := newWorld(t)
	on := w.open(func(spec *stowagev1alpha1.GCEBackend) {
		spec.Labels = map[string]stowagev1alpha1.GCELabelValue{"team": "storage"}
		spec.DiskType, spec.ProvisionedIOPS = "hyperdisk-balanced", new(int64(2000))
	})
	request := backendtest.Request("1")
	request.Node = nodeNamed("node-b", zoneB)
	made := w.mustProvision(on, request)

	disk := w.mustHaveOne("pvc-1")
	if cloud.NameOf(disk.Zone) != zoneB || cloud.NameOf(disk.Type) != "hyperdisk-balanced" || disk.ProvisionedIops != 2000 || disk.SizeGb != 4 {
		t.Errorf("the disk is %+v", disk)
	}
	want := owner.Disk{CreatedBy: "stowage.dev", Owner: backend.Owner{ID: "pvc-1", Cluster: string(thisCluster), Backend: "cloud", Claim: request.Claim}}
	var described owner.Disk
	if err := json.Unmarshal([]byte(disk.Description), &described); err != nil || !reflect.DeepEqual(described, want) {
		t.Errorf("it is described as %q: %v", disk.Description, err)
	}
	labels := map[string]string{"team": "storage", "stowage-cluster": string(thisCluster), "stowage-backend": "cloud", "stowage-claim-uid": "1"}
	if !reflect.DeepEqual(disk.Labels, labels) {
		t.Errorf("its labels are %v", disk.Labels)
	}
	if made.Handle != "pvc-1" || made.Capacity.String() != "4Gi" || made.FSType != "ext4" ||
		made.Attributes["disk"] != "projects/demo/zones/europe-west3-b/disks/pvc-1" {
		t.Errorf("the volume is %+v", made)
	}
	if !reflect.DeepEqual(made.NodeAffinity, backend.AffinityToLabel(corev1.LabelTopologyZone, zoneB)) {
		t.Errorf("it can be used on %+v", made.NodeAffinity)
	}
}

func TestAVolumeHasTheFileSystemOfTheSpec(t *testing.T) {
	for name, test := range map[string]struct {
		mode                corev1.PersistentVolumeMode
		fsType, asked, want string
	}{
		"ext4 by default":      {corev1.PersistentVolumeFilesystem, "", "", "ext4"},
		"xfs":                  {corev1.PersistentVolumeFilesystem, "xfs", "", "xfs"},
		"what its class names": {corev1.PersistentVolumeFilesystem, "xfs", "ext4", "ext4"},
		"none on a device":     {corev1.PersistentVolumeBlock, "xfs", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			request := backendtest.Request("1")
			request.VolumeMode, request.FSType = test.mode, test.asked
			on := w.open(func(spec *stowagev1alpha1.GCEBackend) { spec.FSType = test.fsType })
			if made := w.mustProvision(on, request); made.FSType != test.want {
				t.Errorf("it has %q", made.FSType)
			}
		})
	}
}

func TestMoreThanADiskCanHaveIsRefused(t *testing.T) {
	w := newWorld(t)
	request := backendtest.Request("1")
	request.Capacity = resource.MustParse("65Ti")
	_, err := w.open().Provision(t.Context(), request)
	w.mustBe(err, backend.Invalid, "disks of type pd-balanced have 65536Gi at most", "65Ti")
	if w.has("pvc-1") {
		t.Error("there is a disk")
	}
}

func TestADiskThatCouldNeverBeWrittenIsRefused(t *testing.T) {
	w := newWorld(t)
	request := backendtest.Request("1")
	request.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	_, err := w.open().Provision(t.Context(), request)
	w.mustBe(err, backend.Invalid, "ReadOnlyMany alone it could never be written")
	request.AccessModes = append(request.AccessModes, corev1.ReadWriteOnce)
	w.mustProvision(w.open(), request)
}

func TestAPodsNodeDecidesOnTheZone(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		node *corev1.Node
		says string
	}{
		"a node without a zone": {nodeNamed("node-1", ""), "node node-1 has no label topology.kubernetes.io/zone"},
		"a node of another zone": {nodeNamed("node-c", zoneC), "node node-c is in zone europe-west3-c, and backend cloud makes disks in europe-west3-a, europe-west3-b only: " +
			"so that pods are placed there, let the StorageClass have allowedTopologies with topology.kubernetes.io/zone in them, or add the zone to gce.zones"},
		"a node beyond the border": {nodeNamed("node-x", "mars-a"), "mars-a"},
	} {
		t.Run(name, func(t *testing.T) {
			request := backendtest.Request("1")
			request.Node = test.node
			_, err := w.open().Provision(t.Context(), request)
			w.mustBe(err, backend.WrongNode, test.says)
		})
	}
	if w.has("pvc-1") {
		t.Error("there is a disk")
	}
}

func TestADiskThatWasBegunElsewhereIsNotForThisNode(t *testing.T) {
	w := newWorld(t)
	request := backendtest.Request("1")
	request.Node = nodeNamed("node-1", zoneA)
	w.mustProvision(w.open(), request)
	request.Node = nodeNamed("node-b", zoneB)
	_, err := w.open().Provision(t.Context(), request)
	w.mustBe(err, backend.WrongNode, "was made in zone europe-west3-a, and node node-b isn't there")
	w.mustHaveOne("pvc-1")
}

func TestDisksWithoutANodeSpreadOverTheZones(t *testing.T) {
	on := newWorld(t).open(func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{zoneA, zoneB, zoneC} })
	fewer := on.spec
	fewer.Zones = []string{zoneC, zoneA}
	count := map[string]int{}
	for i := range 300 {
		request := backendtest.Request(fmt.Sprint(i))
		zone, err := on.maker().Zones(diskclass.Class{}).For(request, nil)
		if err != nil {
			t.Fatal(err)
		}
		count[zone]++
		left, err := (&gceBackend{spec: fewer}).maker().Zones(diskclass.Class{}).For(request, nil)
		if err != nil || zone != zoneB && left != zone {
			t.Errorf("volume %d goes from zone %s to %s because another was taken away: %v", i, zone, left, err)
		}
	}
	for _, zone := range on.spec.Zones {
		if count[zone] < 60 {
			t.Errorf("they are spread as %v", count)
		}
	}
}

func TestAClassDecidesOnTheZones(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		key    string
		values []string
		wanted string
	}{
		"by zone":        {corev1.LabelTopologyZone, []string{zoneB}, zoneB},
		"by region":      {corev1.LabelTopologyRegion, []string{"europe-west3"}, zoneA},
		"none of ours":   {corev1.LabelTopologyZone, []string{zoneC}, ""},
		"by what is not": {"example.com/rack", []string{"7"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			request := backendtest.Request("1")
			request.Topologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: test.key, Values: test.values},
			}}}
			zone, err := w.open().maker().Zones(diskclass.Class{}).For(request, nil)
			if test.wanted == "" {
				w.mustBe(err, backend.Invalid, "allowedTopologies", "topology.kubernetes.io/zone")
			} else if err != nil || !slices.Contains([]string{test.wanted, zoneB}, zone) {
				t.Errorf("it chose %q: %v", zone, err)
			}
		})
	}
}

func TestADiskIsFoundInAZoneThatTheBackendHasNoMore(t *testing.T) {
	w := newWorld(t)
	request := backendtest.Request("1")
	made := w.mustProvision(w.open(), request)
	elsewhere := w.openAs(w.newKind(thisCluster), "cloud", func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{zoneC} })
	again := w.mustProvision(elsewhere, request)
	if !reflect.DeepEqual(made, again) {
		t.Errorf("it was %+v, and is %+v", made, again)
	}
	w.must(w.untilFinal(func() error { return elsewhere.Delete(t.Context(), "pvc-1") }))
	if w.has("pvc-1") {
		t.Error("the disk is there still")
	}
}

func TestADiskThatIsBeingMadeInAZoneThatTheBackendHasNoMoreIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.inProgressAtOnce()
	w.inject(gcemock.Fault{Method: "disks.insert", Count: 1, Stuck: true})
	request := backendtest.Request("1")
	request.Node = nodeNamed("node-1", zoneA)
	_, err := w.open().Provision(t.Context(), request)
	w.mustBe(err, backend.InProgress)
	elsewhere := w.openAs(w.newKind(thisCluster), "cloud", func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{zoneB} })

	// Google doesn't show a disk before its operation runs; this cloud does.
	w.plans(func(call *http.Request) fate {
		if strings.HasSuffix(call.URL.Path, "/aggregated/disks") {
			return outdated
		}
		return served
	})
	_, err = elsewhere.Provision(t.Context(), request)
	w.mustBe(err, backend.InProgress, "disk pvc-1 is being made in zone europe-west3-a")

	w.plans(nil)
	w.removeFaults()
	if made := w.mustProvision(elsewhere, request); !reflect.DeepEqual(made.NodeAffinity, backend.AffinityToLabel(corev1.LabelTopologyZone, zoneA)) {
		t.Errorf("it can be used on %+v", made.NodeAffinity)
	}
}

func TestADiskThatAnotherProgramDeletedIsNotMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.mustProvision(w.open(), backendtest.Request("1"))
	zone := cloud.NameOf(w.mustHaveOne("pvc-1").Zone)
	operation, err := w.compute.Disks.Delete(project, zone, "pvc-1").Do()
	w.ended(zone, operation, err)
	_, err = w.openAs(w.newKind(thisCluster), "cloud").Provision(t.Context(), backendtest.Request("1"))
	w.mustBe(err, backend.Invalid, "was deleted since, not by Stowage", "create the claim again")
}

func TestASpecThatTheCloudCanNotServeIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*stowagev1alpha1.GCEBackend)
		kind   backend.ErrorKind
		says   string
	}{
		"a project that isn't there": {func(spec *stowagev1alpha1.GCEBackend) { spec.Project = "nobodys" }, backend.Unavailable, "there is no project nobodys"},
		"a zone that isn't there":    {func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{"mars-a"} }, backend.Invalid, "gce.zones"},
		"a type that isn't there":    {func(spec *stowagev1alpha1.GCEBackend) { spec.DiskType = "pd-fast" }, backend.Invalid, "no disks of type pd-fast"},
		"iops for a type without":    {func(spec *stowagev1alpha1.GCEBackend) { spec.ProvisionedIOPS = new(int64(9)) }, backend.Invalid, "gce.provisionedIOPS"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.open(test.change).Provision(t.Context(), backendtest.Request("1"))
			w.mustBe(err, test.kind, test.says)
		})
	}
}

func nodeNamed(name, zone string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if zone != "" {
		node.Labels[corev1.LabelTopologyZone] = zone
	}
	return node
}

// ourDisk is one as this backend makes it, for a claim.
func (w *world) ourDisk(on *gceBackend, uid string, sizeGb int64) *compute.Disk {
	w.Helper()
	request := backendtest.Request(uid)
	description, err := on.owner.DescribeDisk(request.ID, request.Claim)
	w.must(err)
	return &compute.Disk{Name: request.ID, Description: description, Labels: on.owner.Label(map[string]string{labels.Claim: string(request.Claim.UID)}), SizeGb: sizeGb}
}

func TestADiskThatTheCloudFailedToMakeIsDeletedWithItsClaim(t *testing.T) {
	w := newWorld(t)
	on, request := w.open(), backendtest.Request("1")
	description, err := on.owner.DescribeDisk(request.ID, request.Claim)
	w.must(err)
	failed := &cloud.Disk{Disk: &compute.Disk{Name: request.ID, Description: description, Status: cloud.DiskFailed}}
	// An undo takes Unavailable for a call that may still have an effect, and would never get further.
	w.mustBe(on.checkMade(failed, request), backend.Invalid, "delete the claim, which deletes what there is of it")
}
