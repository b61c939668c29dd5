package local_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/local"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// deleting is a volume on node-1 that is marked for deletion, and that its agent hasn't begun to remove.
func deleting(t *testing.T) (cluster, backend.Backend, string) {
	t.Helper()
	cluster := newCluster(t, Node("node-1"))
	disks, request := cluster.open(t, LocalBackend("disks")), backendtest.Request("1")
	if _, err := disks.Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	if err := disks.Delete(t.Context(), request.ID); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	return cluster, disks, request.ID
}

// begin notes that the agent removes a volume, as it does before it touches data.
func (c cluster) begin(t *testing.T, uid string) {
	t.Helper()
	volume := c.volume(t, uid)
	volume.Status.Removing = true
	if err := c.Status().Update(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
}

// reports has the agent of node-1 say what lies on the disk and no NodeVolume has.
func (c cluster) reports(t *testing.T, ids ...string) *stowagev1alpha1.NodeDisk {
	t.Helper()
	disk := &stowagev1alpha1.NodeDisk{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "disks.node-1"}, disk); err != nil {
		t.Fatal(err)
	}
	disk.Status.Unrecorded = &stowagev1alpha1.UnrecordedVolumes{Count: int32(len(ids))}
	for _, id := range ids {
		disk.Status.Unrecorded.Volumes = append(disk.Status.Unrecorded.Volumes, stowagev1alpha1.UnrecordedVolume{ID: id})
	}
	if err := c.Update(t.Context(), disk); err != nil {
		t.Fatal(err)
	}
	return disk
}

func TestAVolumeIsRetainedWhileItsAgentHasNotBegunToRemoveIt(t *testing.T) {
	cluster, disks, id := deleting(t)
	cluster.reports(t)

	place, err := backend.Retain(t.Context(), disks, id)

	if err != nil || !strings.Contains(place, "on node node-1 (NodeVolume "+id+")") || strings.Contains(place, "older version") {
		t.Errorf("it lies in %q, error %v", place, err)
	}
	volume := cluster.volume(t, "1")
	if volume.Spec.RemoveData || volume.Labels[stowagev1alpha1.RetainedLabel] == "" {
		t.Errorf("removeData is %v, the labels are %v", volume.Spec.RemoveData, volume.Labels)
	}
	if again, err := backend.Retain(t.Context(), disks, id); err != nil || again != place {
		t.Errorf("repeated, it is in %q, error %v", again, err)
	}
}

func TestAnAgentOfAnOlderVersionMayHaveBegunToRemoveARetainedVolume(t *testing.T) {
	cluster, disks, id := deleting(t)

	place, err := backend.Retain(t.Context(), disks, id)

	if err != nil || !strings.Contains(place, "older version") {
		t.Errorf("it lies in %q, error %v", place, err)
	}
	if cluster.volume(t, "1").Spec.RemoveData {
		t.Error("the order stands")
	}
}

func TestAVolumeThatItsAgentBeganToRemoveIsNotRetained(t *testing.T) {
	cluster, disks, id := deleting(t)
	cluster.begin(t, "1")

	_, err := backend.Retain(t.Context(), disks, id)

	expectError(t, err, backend.NotFound, "the agent of node node-1 has begun to remove it")
	if !cluster.volume(t, "1").Spec.RemoveData {
		t.Error("the order was taken back")
	}
}

func TestAVolumeIsNotRetainedByAReadFromBeforeItsAgentBegan(t *testing.T) {
	cluster, _, id := deleting(t)
	before := cluster.volume(t, "1")
	cluster.begin(t, "1")
	late, err := local.NewKind(cluster, showing{cluster, before}, base).Open(LocalBackend("disks"))
	if err != nil {
		t.Fatal(err)
	}

	_, err = backend.Retain(t.Context(), late, id)

	expectError(t, err, backend.InProgress, "read again")
	if volume := cluster.volume(t, "1"); !volume.Spec.RemoveData || volume.Labels[stowagev1alpha1.RetainedLabel] != "" {
		t.Error("it was retained")
	}
}

func TestAStaleLeaderDoesNotMarkARetainedVolumeForDeletion(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	disks, request := cluster.open(t, LocalBackend("disks")), backendtest.Request("1")
	if _, err := disks.Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	before := cluster.volume(t, "1")
	late, err := local.NewKind(cluster, showing{cluster, before}, base).Open(LocalBackend("disks"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backend.Retain(t.Context(), disks, request.ID); err != nil {
		t.Fatal(err)
	}

	expectError(t, late.Delete(t.Context(), request.ID), backend.InProgress, "read again")

	if volume := cluster.volume(t, "1"); volume.Spec.RemoveData || !volume.DeletionTimestamp.IsZero() {
		t.Error("it was marked for deletion")
	}
}

func TestARetainedVolumeThatAnotherVolumeObjectStandsForIsRemovedWithIt(t *testing.T) {
	cluster, disks, id := deleting(t)
	if _, err := backend.Retain(t.Context(), disks, id); err != nil {
		t.Fatal(err)
	}
	if err := disks.Delete(t.Context(), id); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	if !cluster.volume(t, "1").Spec.RemoveData {
		t.Error("it stays")
	}
}

func TestAnothersVolumeIsNotRetained(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	request := backendtest.Request("1")
	if _, err := cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	if _, err := backend.Retain(t.Context(), cluster.open(t, LocalBackend("others")), request.ID); !errors.Is(err, backend.Conflict) {
		t.Errorf("it answers %v", err)
	}
}

// showing reads one NodeVolume as it was before.
type showing struct {
	cluster
	volume *stowagev1alpha1.NodeVolume
}

func (s showing) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if volume, is := object.(*stowagev1alpha1.NodeVolume); is && key.Name == s.volume.Name {
		s.volume.DeepCopyInto(volume)
		return nil
	}
	return s.cluster.Get(ctx, key, object, options...)
}
