package local_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/local"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestAVolumeHasGrownOnceItsAgentSaysSo(t *testing.T) {
	cluster, disks := newCluster(t, Node("node-1")).withVolume(t)
	_, err := grow(t, disks, "5Mi")
	expectError(t, err, backend.InProgress, "waiting for the agent of node node-1")

	cluster.actAsAgent(t.Context())
	if expanded, err := grow(t, disks, "5Mi"); err != nil || expanded.Capacity.String() != "5Mi" || expanded.OnNode {
		t.Errorf("it answers %+v, %v", expanded, err)
	}
}

func TestASmallerRequestReplacesOneWithoutRoom(t *testing.T) {
	cluster, disks := newCluster(t, Node("node-1")).withVolume(t)
	_, _ = grow(t, disks, "5Gi")
	cluster.sayOfGrowth(t, stowagev1alpha1.ReasonExhausted, "no room")
	_, err := grow(t, disks, "5Gi")
	expectError(t, err, backend.Exhausted, "node node-1: no room")

	_, _ = grow(t, disks, "2Mi")
	if asked := cluster.volume(t, "1").Spec.Capacity; asked.String() != "2Mi" {
		t.Errorf("%s is still requested", asked.String())
	}
	cluster.actAsAgent(t.Context())
	if expanded, err := grow(t, disks, "2Mi"); err != nil || expanded.Capacity.String() != "2Mi" {
		t.Errorf("it answers %+v, %v", expanded, err)
	}
}

func TestTheReportOfAnEarlierGrowthIsNoAnswer(t *testing.T) {
	cluster, disks := newCluster(t, Node("node-1")).withVolume(t)
	_, _ = grow(t, disks, "5Gi")
	cluster.sayOfGrowth(t, stowagev1alpha1.ReasonExhausted, "no room", func(said *metav1.Condition) { said.ObservedGeneration-- })
	_, err := grow(t, disks, "5Gi")
	expectError(t, err, backend.InProgress, "waiting for the agent")
}

func TestACapacityIsAdvisoryUnlessTheAgentEnforcesIt(t *testing.T) {
	cluster, disks := newCluster(t, Node("node-1")).withVolume(t)
	_, _ = grow(t, disks, "5Mi")
	cluster.actAsAgent(t.Context())
	if expanded, err := grow(t, disks, "5Mi"); err != nil || !expanded.Advisory {
		t.Errorf("without a quota it answers %+v, %v", expanded, err)
	}
	volume := cluster.volume(t, "1")
	volume.Status.Enforced = true
	if err := cluster.Status().Update(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	if expanded, err := grow(t, disks, "5Mi"); err != nil || expanded.Advisory {
		t.Errorf("with one it answers %+v, %v", expanded, err)
	}
}

func TestAVolumeThatIsLostWaitsToGrow(t *testing.T) {
	cluster, disks := newCluster(t, Node("node-1")).withVolume(t)
	volume := cluster.volume(t, "1")
	meta.SetStatusCondition(&volume.Status.Conditions, metav1.Condition{
		Type: stowagev1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: stowagev1alpha1.ReasonLost, Message: "not on the disk",
	})
	if err := cluster.Status().Update(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	_, err := grow(t, disks, "5Mi")
	expectError(t, err, backend.Unavailable, "not on the disk")
}

func TestAVolumeOfAnotherBackendDoesNotGrow(t *testing.T) {
	cluster, _ := newCluster(t, Node("node-1")).withVolume(t)
	_, err := grow(t, cluster.open(t, LocalBackend("others")), "5Mi")
	expectError(t, err, backend.Conflict, "belongs to backend disks")
	if asked := cluster.volume(t, "1").Spec.Capacity; asked.String() != "1Mi" {
		t.Errorf("%s is requested", asked.String())
	}
}

func TestAVolumeThatIsBeingDeletedDoesNotGrow(t *testing.T) {
	_, disks := newCluster(t, Node("node-1")).withVolume(t)
	_ = disks.Delete(t.Context(), backendtest.Request("1").ID)
	_, err := grow(t, disks, "5Mi")
	expectError(t, err, backend.Conflict, "is being deleted")
}

func TestAGrowthDecidedOnAnOldReadIsRepeated(t *testing.T) {
	cluster, _ := newCluster(t, Node("node-1")).withVolume(t)
	shown := cluster.volume(t, "1")
	cluster.actAsAgent(t.Context())
	stale := interceptor.NewClient(cluster.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			shown.DeepCopyInto(object.(*stowagev1alpha1.NodeVolume))
			return nil
		},
	})
	_, err := grow(t, seenBy(stale).open(t, LocalBackend("disks")), "5Mi")
	expectError(t, err, backend.InProgress, "has changed")
}

func TestAVolumeThatTheCacheHasNotSeenIsThere(t *testing.T) {
	cluster, _ := newCluster(t, Node("node-1")).withVolume(t)
	disks, err := local.NewKind(newCluster(t), cluster, base).Open(LocalBackend("disks"))
	if err != nil {
		t.Fatal(err)
	}
	if expanded, err := grow(t, disks, "1Mi"); err != nil || expanded.Capacity.String() != "1Mi" {
		t.Errorf("it answers %+v, %v", expanded, err)
	}
}

// withVolume makes volume 1, of 1Mi, in the backend disks.
func (c cluster) withVolume(t *testing.T) (cluster, backend.Backend) {
	t.Helper()
	disks := c.open(t, LocalBackend("disks"))
	_, _ = disks.Provision(t.Context(), backendtest.Request("1"))
	c.actAsAgent(t.Context())
	if _, err := disks.Provision(t.Context(), backendtest.Request("1")); err != nil {
		t.Fatal(err)
	}
	return c, disks
}

func grow(t *testing.T, disks backend.Backend, size string) (backend.Expansion, error) {
	return backend.Expand(t.Context(), disks, backend.ExpandRequest{ID: backendtest.Request("1").ID, Capacity: resource.MustParse(size)})
}

// sayOfGrowth reports, as the agent, that volume 1 can't have the requested capacity.
func (c cluster) sayOfGrowth(t *testing.T, reason, message string, changes ...func(*metav1.Condition)) {
	t.Helper()
	volume := c.volume(t, "1")
	said := metav1.Condition{
		Type: stowagev1alpha1.GrantedCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: volume.Generation,
	}
	for _, change := range changes {
		change(&said)
	}
	meta.SetStatusCondition(&volume.Status.Conditions, said)
	if err := c.Status().Update(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
}

func seenBy(seen client.Client) cluster { return cluster{seen} }
