package local_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/local"
	"github.com/stowage-dev/stowage/internal/program"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const base = "/var/lib/stowage"

func TestLocalKeepsTheContract(t *testing.T) {
	for name, options := range map[string][]func(*stowagev1alpha1.StorageBackend){"Directory": nil, "Image": {inImages}} {
		t.Run(name, func(t *testing.T) {
			backendtest.Contract(t, func(t *testing.T) (backend.Backend, func(string) bool) {
				cluster := newCluster(t, Node("node-1"), Node("node-2"))
				cluster.runAgent(t)
				return cluster.open(t, LocalBackend("disks", options...)), cluster.has
			})
		})
	}
}

func TestANewVolumeIsRequestedOnTheReadyNodeWithMostRoom(t *testing.T) {
	cluster := newCluster(t, Node("node-1"), Node("node-2"), unready(Node("node-0")))
	disks := cluster.open(t, LocalBackend("disks"))
	for _, uid := range []string{"1", "2"} {
		if _, err := disks.Provision(t.Context(), backendtest.Request(uid)); !errors.Is(err, backend.InProgress) {
			t.Fatal(err)
		}
	}
	for uid, node := range map[string]string{"1": "node-1", "2": "node-2"} {
		volume := cluster.volume(t, uid)
		if volume.Spec.NodeName != node {
			t.Errorf("volume %s was requested on %s, not on %s", uid, volume.Spec.NodeName, node)
		}
	}
}

func TestAVolumeForAScheduledPodIsRequestedOnThePodsNode(t *testing.T) {
	cluster := newCluster(t, Node("node-1"), Node("node-2"))
	request := backendtest.Request("1")
	request.Node = Node("node-2")
	if _, err := cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	if node := cluster.volume(t, "1").Spec.NodeName; node != "node-2" {
		t.Errorf("it was requested on %s", node)
	}
}

func TestAPodsNodeThatIsNotTheBackendsIsRefused(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	fast := LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local.NodeSelector = map[string]string{"disk": "ssd"}
	})
	request := backendtest.Request("1")
	request.Node = Node("node-1")
	_, err := cluster.open(t, fast).Provision(t.Context(), request)
	expectError(t, err, backend.WrongNode, "disk=ssd")
}

func TestANewVolumeIsRequestedOnlyOnNodesThatItsClassAllows(t *testing.T) {
	cluster := newCluster(t, Node("node-1"), Node("node-2"))
	request := backendtest.Request("1")
	request.Topologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: stowagev1alpha1.TopologyNodeLabel, Values: []string{"node-2"}},
	}}}
	if _, err := cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	if node := cluster.volume(t, "1").Spec.NodeName; node != "node-2" {
		t.Errorf("it was requested on %s", node)
	}
	other := backendtest.Request("2")
	other.Topologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}}
	_, err := cluster.open(t, LocalBackend("disks")).Provision(t.Context(), other)
	expectError(t, err, backend.Unavailable, "allowedTopologies")
}

func TestABackendWithoutNodesNamesItsLabels(t *testing.T) {
	disks := newCluster(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "unlabelled"}}).open(t, LocalBackend("disks"))
	expectError(t, disks.(backend.Prober).Probe(t.Context()), backend.Unavailable, stowagev1alpha1.TopologyNodeLabel)
	_, err := disks.Provision(t.Context(), backendtest.Request("1"))
	expectError(t, err, backend.Unavailable, "no node has the labels")
}

func TestTheAgentsReportBecomesAnErrorKind(t *testing.T) {
	for reason, kind := range map[string]backend.ErrorKind{
		stowagev1alpha1.ReasonExhausted:       backend.Exhausted,
		stowagev1alpha1.ReasonPathOutsideBase: backend.Invalid,
		stowagev1alpha1.ReasonNotSupported:    backend.Invalid,
		stowagev1alpha1.ReasonUnavailable:     backend.Unavailable,
		stowagev1alpha1.ReasonPending:         backend.InProgress,
	} {
		t.Run(reason, func(t *testing.T) {
			cluster := newCluster(t, Node("node-1"))
			disks := cluster.open(t, LocalBackend("disks"))
			_, _ = disks.Provision(t.Context(), backendtest.Request("1"))
			cluster.say(t, "1", metav1.ConditionFalse, reason, "because")
			_, err := disks.Provision(t.Context(), backendtest.Request("1"))
			expectError(t, err, kind, "node node-1: because")
		})
	}
}

func TestAVolumeOfAnotherBackendIsNotTaken(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	_, _ = cluster.open(t, LocalBackend("old")).Provision(t.Context(), backendtest.Request("1"))
	cluster.say(t, "1", metav1.ConditionTrue, stowagev1alpha1.ReasonReady, "")
	_, err := cluster.open(t, LocalBackend("new")).Provision(t.Context(), backendtest.Request("1"))
	expectError(t, err, backend.Conflict, "belongs to backend old")
}

func TestAVolumeThatFoundNoRoomFollowsItsPodToAnotherNode(t *testing.T) {
	cluster := newCluster(t, Node("node-1"), Node("node-2"))
	disks, request := cluster.open(t, LocalBackend("disks")), backendtest.Request("1")
	request.Node = Node("node-1")
	_, _ = disks.Provision(t.Context(), request)
	cluster.say(t, "1", metav1.ConditionFalse, stowagev1alpha1.ReasonExhausted, "no room")

	request.Node = Node("node-2")
	_, err := disks.Provision(t.Context(), request)
	expectError(t, err, backend.InProgress, "goes to node node-2")
	cluster.actAsAgent(t.Context())
	_, _ = disks.Provision(t.Context(), request)

	if node := cluster.volume(t, "1").Spec.NodeName; node != "node-2" {
		t.Errorf("it is still requested on %s", node)
	}
}

func TestNothingOfAnotherBackendIsDeleted(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	_, _ = cluster.open(t, LocalBackend("disks")).Provision(t.Context(), backendtest.Request("1"))
	err := cluster.open(t, LocalBackend("others")).Delete(t.Context(), backendtest.Request("1").ID)
	expectError(t, err, backend.Conflict, "belongs to backend disks")
	if !cluster.has(backendtest.Request("1").ID) {
		t.Error("it was deleted all the same")
	}
}

func TestASpecThatCanNotBeServedIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*stowagev1alpha1.LocalBackend)
		want   string
	}{
		"path outside the base": {func(spec *stowagev1alpha1.LocalBackend) { spec.Path = "/data" }, "not below " + base},
		"path that only begins like the base": {
			func(spec *stowagev1alpha1.LocalBackend) { spec.Path = base + "-other" }, "not below " + base,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) { test.change(object.Spec.Local) })
			_, err := local.NewKind(nil, nil, base).Open(object)
			expectError(t, err, backend.Invalid, test.want)
		})
	}
}

// cluster is an API server in memory.
type cluster struct{ client.Client }

func newCluster(t *testing.T, nodes ...client.Object) cluster {
	t.Helper()
	scheme, err := program.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return cluster{fakeclient.NewClientBuilder().WithScheme(scheme).WithObjects(nodes...).
		WithStatusSubresource(&stowagev1alpha1.NodeVolume{}).Build()}
}

// open opens a backend that has a disk of 100Gi on every node.
func (c cluster) open(t *testing.T, object *stowagev1alpha1.StorageBackend) backend.Backend {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := c.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		c.disk(t, object.Name, node.Name, "100Gi", "100Gi")
	}
	return c.openBare(t, object)
}

// openBare opens a backend that has no disks but those that the test made.
func (c cluster) openBare(t *testing.T, object *stowagev1alpha1.StorageBackend) backend.Backend {
	t.Helper()
	opened, err := local.NewKind(c, c, base).Open(object)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// disk says what room a backend has on a node, as the node's agent does.
func (c cluster) disk(t *testing.T, backend, node, total, available string) *stowagev1alpha1.NodeDisk {
	t.Helper()
	disk := &stowagev1alpha1.NodeDisk{
		ObjectMeta: metav1.ObjectMeta{Name: backend + "." + node, Labels: map[string]string{stowagev1alpha1.BackendLabel: backend}},
		Spec:       stowagev1alpha1.NodeDiskSpec{NodeName: node, Backend: backend, Path: base + "/disks"},
		Status: stowagev1alpha1.NodeDiskStatus{
			Total: new(resource.MustParse(total)), Available: new(resource.MustParse(available)), Used: new(resource.MustParse("1Gi")),
			Conditions: []metav1.Condition{{Type: stowagev1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: stowagev1alpha1.ReasonReady}},
		},
	}
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), disk)); err != nil {
		t.Fatal(err)
	}
	return disk
}

func (c cluster) has(id string) bool {
	return c.Get(context.Background(), client.ObjectKey{Name: id}, &stowagev1alpha1.NodeVolume{}) == nil
}

func (c cluster) volume(t *testing.T, uid string) *stowagev1alpha1.NodeVolume {
	t.Helper()
	volume := &stowagev1alpha1.NodeVolume{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: backendtest.Request(uid).ID}, volume); err != nil {
		t.Fatal(err)
	}
	return volume
}

// say has a node's agent say how making a volume went.
func (c cluster) say(t *testing.T, uid string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	volume := c.volume(t, uid)
	c.provisioned(volume, status, reason, message)
	if err := c.Status().Update(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
}

func (c cluster) provisioned(volume *stowagev1alpha1.NodeVolume, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&volume.Status.Conditions, metav1.Condition{
		Type: stowagev1alpha1.ProvisionedCondition, Status: status, Reason: reason, Message: message,
	})
}

// runAgent plays the agents of all nodes until the test ends: it makes what is
// requested and releases what is deleted.
func (c cluster) runAgent(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				c.actAsAgent(ctx)
			}
		}
	}()
}

func (c cluster) actAsAgent(ctx context.Context) {
	volumes := &stowagev1alpha1.NodeVolumeList{}
	if c.List(ctx, volumes) != nil {
		return
	}
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		if !volume.DeletionTimestamp.IsZero() {
			volume.Finalizers = nil
			_ = c.Update(ctx, volume)
			continue
		}
		volume.Status.Path, volume.Status.Capacity = base+"/disks/"+volume.Name, &volume.Spec.Capacity
		c.provisioned(volume, metav1.ConditionTrue, stowagev1alpha1.ReasonReady, "")
		_ = c.Status().Update(ctx, volume)
	}
}

func unready(node *corev1.Node) *corev1.Node {
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	return node
}

func expectError(t *testing.T, err error, kind backend.ErrorKind, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v of kind %q, not one of kind %s with %q", err, backend.KindOf(err), kind, text)
	}
}

func TestAnUnwantedVolumeIsNotAwaited(t *testing.T) {
	cluster, request := newCluster(t, Node("node-1")), backendtest.Request("1")
	disks := cluster.open(t, LocalBackend("disks"))
	request.Unwanted = true
	// An earlier call may have requested this, and may still take effect.
	if _, err := disks.Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
		t.Errorf("an unrequested volume gave %v", err)
	}
	_, err := disks.Provision(t.Context(), request)
	expectError(t, err, backend.Invalid, "isn't made any further")
	if backend.Unfinished(err) {
		t.Error("nothing goes on that its deletion doesn't end, but it is unfinished")
	}
	if err := disks.Delete(t.Context(), request.ID); !errors.Is(err, backend.InProgress) {
		t.Errorf("its deletion returned %v", err)
	}
}
