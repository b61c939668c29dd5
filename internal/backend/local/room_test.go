package local_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func asking(uid, size string) backend.Request {
	request := backendtest.Request(uid)
	request.Capacity = resource.MustParse(size)
	return request
}

func TestAVolumeGoesToTheNodeThatReportsMostRoom(t *testing.T) {
	cluster := newCluster(t, Node("node-1"), Node("node-2"))
	cluster.disk(t, "disks", "node-1", "100Gi", "10Gi")
	cluster.disk(t, "disks", "node-2", "50Gi", "40Gi")
	_, _ = cluster.openBare(t, LocalBackend("disks")).Provision(t.Context(), asking("1", "1Gi"))
	if node := cluster.volume(t, "1").Spec.NodeName; node != "node-2" {
		t.Errorf("it was requested on %s", node)
	}
}

func TestAnUnmadeRequestTakesUpRoom(t *testing.T) {
	cluster := newCluster(t, Node("node-1"), Node("node-2"))
	cluster.disk(t, "disks", "node-1", "100Gi", "10Gi")
	cluster.disk(t, "disks", "node-2", "100Gi", "8Gi")
	disks := cluster.openBare(t, LocalBackend("disks"))
	_, _ = disks.Provision(t.Context(), asking("1", "6Gi"))
	_, _ = disks.Provision(t.Context(), asking("2", "6Gi"))
	if first, second := cluster.volume(t, "1").Spec.NodeName, cluster.volume(t, "2").Spec.NodeName; first != "node-1" || second != "node-2" {
		t.Errorf("they were requested on %s and %s", first, second)
	}
	_, err := disks.Provision(t.Context(), asking("3", "6Gi"))
	expectError(t, err, backend.Exhausted, "none of 2 nodes has room for 6Gi (node-1; node-2): delete claims")
	if cluster.has(asking("3", "6Gi").ID) {
		t.Error("it was still requested")
	}
}

func TestTheReasonForNoRoomStaysTheSameWhileTheDisksChange(t *testing.T) {
	cluster := newCluster(t, Node("node-1"), Node("node-2"))
	cluster.disk(t, "disks", "node-1", "100Gi", "4Gi")
	changing := cluster.disk(t, "disks", "node-2", "100Gi", "3Gi")
	disks := cluster.openBare(t, LocalBackend("disks"))
	_, before := disks.Provision(t.Context(), asking("1", "6Gi"))
	changing.Status.Available = new(resource.MustParse("5Gi"))
	if err := cluster.Update(t.Context(), changing); err != nil {
		t.Fatal(err)
	}
	_, after := disks.Provision(t.Context(), asking("1", "6Gi"))
	if !errors.Is(after, backend.Exhausted) || after.Error() != before.Error() {
		t.Errorf("first %q, and then %q", before, after)
	}
}

func TestAVolumeThatFoundNoRoomGoesToTheNextNodeThatHas(t *testing.T) {
	cluster := newCluster(t, Node("node-1"), Node("node-2"))
	first := cluster.disk(t, "disks", "node-1", "100Gi", "10Gi")
	cluster.disk(t, "disks", "node-2", "100Gi", "8Gi")
	disks := cluster.openBare(t, LocalBackend("disks"))
	_, _ = disks.Provision(t.Context(), asking("1", "6Gi"))
	cluster.say(t, "1", metav1.ConditionFalse, stowagev1alpha1.ReasonExhausted, "no room on the disk")

	_, err := disks.Provision(t.Context(), asking("1", "6Gi"))
	expectError(t, err, backend.Exhausted, "node node-1: no room on the disk")
	first.Status.Available = new(resource.MustParse("1Gi"))
	if err := cluster.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	_, err = disks.Provision(t.Context(), asking("1", "6Gi"))
	expectError(t, err, backend.InProgress, "goes to node node-2")
	cluster.actAsAgent(t.Context())
	_, _ = disks.Provision(t.Context(), asking("1", "6Gi"))
	if node := cluster.volume(t, "1").Spec.NodeName; node != "node-2" {
		t.Errorf("it is requested on %s", node)
	}
}

func TestABackendSaysWhichOfItsNodesCannotMakeVolumes(t *testing.T) {
	cluster := newCluster(t, Node("node-1"), Node("node-2"))
	disks := cluster.openBare(t, LocalBackend("disks"))
	expectError(t, disks.(backend.Prober).Probe(t.Context()), backend.Unavailable, "waiting for the agents of the backend's 2 nodes")

	broken := cluster.disk(t, "disks", "node-1", "100Gi", "10Gi")
	cluster.disk(t, "disks", "node-2", "100Gi", "10Gi")
	if err := disks.(backend.Prober).Probe(t.Context()); err != nil {
		t.Error(err)
	}
	broken.Status.Conditions[0].Status, broken.Status.Conditions[0].Message = metav1.ConditionFalse, "mount the disk"
	if err := cluster.Update(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	expectError(t, disks.(backend.Prober).Probe(t.Context()), backend.Unavailable, "1 of 2 nodes can't make volumes: node node-1: mount the disk")
	_, err := disks.Provision(t.Context(), asking("1", "1Gi"))
	if node := cluster.volume(t, "1").Spec.NodeName; !errors.Is(err, backend.InProgress) || node != "node-2" {
		t.Errorf("it was requested on %s: %v", node, err)
	}
}

func TestAProblemThatNodesShareIsSaidOnce(t *testing.T) {
	var nodes []client.Object
	for number := range 7 {
		nodes = append(nodes, Node(fmt.Sprintf("node-%d", number)))
	}
	cluster := newCluster(t, nodes...)
	disks := cluster.openBare(t, LocalBackend("disks"))
	for number := range 7 {
		broken := cluster.disk(t, "disks", fmt.Sprintf("node-%d", number), "100Gi", "10Gi")
		broken.Status.Conditions[0].Status, broken.Status.Conditions[0].Message = metav1.ConditionFalse, "mount the disk"
		if number == 3 {
			broken.Status.Conditions[0].Message = "mkfs.xfs is missing"
		}
		if err := cluster.Update(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
	}
	expectError(t, disks.(backend.Prober).Probe(t.Context()), backend.Unavailable,
		"7 of 7 nodes can't make volumes: nodes node-0, node-1, node-2, node-4, node-5, and 1 more: mount the disk; node node-3: mkfs.xfs is missing")
}

func TestABackendHasWhatItsDisksHave(t *testing.T) {
	cluster := newCluster(t, Node("node-1"), Node("node-2"))
	space, err := cluster.open(t, LocalBackend("disks")).(backend.CapacityReporter).Space(t.Context())
	if err != nil || space.Total.String() != "200Gi" || space.Used.String() != "2Gi" {
		t.Errorf("it has %s, %s used (%v)", space.Total.String(), space.Used.String(), err)
	}
}
