package local_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// withSource is a cluster of two nodes with one volume, on node-2, and a request for
// a copy of it.
func withSource(t *testing.T, options ...func(*stowagev1alpha1.StorageBackend)) (cluster, backend.Request) {
	t.Helper()
	cluster, request := newCluster(t, Node("node-1"), Node("node-2")), backendtest.Request("1")
	request.Node = Node("node-2")
	_, _ = cluster.open(t, LocalBackend("disks", options...)).Provision(t.Context(), request)
	cluster.actAsAgent(t.Context())
	wanted := backendtest.Request("2")
	wanted.Source = &backend.Source{ID: request.ID, Claim: request.Claim}
	return cluster, wanted
}

func TestACopyIsRequestedOnTheNodeOfItsSource(t *testing.T) {
	for _, node := range []*corev1.Node{nil, Node("node-2")} {
		cluster, request := withSource(t)
		request.Node = node
		if _, err := cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
			t.Fatal(err)
		}
		if asked := cluster.volume(t, "2").Spec; asked.NodeName != "node-2" || asked.Source != request.Source.ID {
			t.Errorf("it is requested as %+v", asked)
		}
	}
}

func TestACopyForAnotherNamespaceSaysWhereItsSourceIs(t *testing.T) {
	cluster, request := withSource(t)
	request.Claim.Namespace, request.Source.Namespace = "other", request.Source.Claim.Namespace
	if _, err := cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	if asked := cluster.volume(t, "2").Spec; asked.Source != request.Source.ID || asked.SourceNamespace != request.Source.Claim.Namespace {
		t.Errorf("it is requested as %+v", asked)
	}
}

func TestAPodOnAnotherNodeThanItsCopyIsSentBack(t *testing.T) {
	cluster, request := withSource(t)
	request.Node = Node("node-1")
	_, err := cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request)
	expectError(t, err, backend.WrongNode, "lies on node node-2, and the pod was placed on node node-1")
	if cluster.has(request.ID) {
		t.Error("it is requested")
	}
}

func TestACopyWithoutRoomIsDeletedWhereThePodMoves(t *testing.T) {
	cluster, request := withSource(t)
	disks := cluster.open(t, LocalBackend("disks"))
	_, _ = disks.Provision(t.Context(), request)
	cluster.say(t, "2", metav1.ConditionFalse, stowagev1alpha1.ReasonExhausted, "no room")
	request.Node = Node("node-1")
	_, err := disks.Provision(t.Context(), request)
	expectError(t, err, backend.InProgress, "waiting for node node-2 to release")
	cluster.actAsAgent(t.Context())
	_, err = disks.Provision(t.Context(), request)
	expectError(t, err, backend.WrongNode, "lies on node node-2")
}

func TestACopyWithoutRoomIsNotMovedAwayFromItsSource(t *testing.T) {
	cluster, request := withSource(t)
	disks := cluster.open(t, LocalBackend("disks"))
	_, _ = disks.Provision(t.Context(), request)
	if err := cluster.DeleteAllOf(t.Context(), &stowagev1alpha1.NodeDisk{}); err != nil {
		t.Fatal(err)
	}
	cluster.disk(t, "disks", "node-1", "100Gi", "100Gi")
	cluster.disk(t, "disks", "node-2", "1Mi", "0")
	cluster.say(t, "2", metav1.ConditionFalse, stowagev1alpha1.ReasonExhausted, "no room")
	_, err := disks.Provision(t.Context(), request)
	expectError(t, err, backend.Exhausted, "no room")
	if asked := cluster.volume(t, "2"); asked.Spec.RemoveData || !asked.DeletionTimestamp.IsZero() {
		t.Error("it is deleted")
	}
}

func TestACopyIsOfTheKindOfItsSourceWhateverItsBackendMakesNow(t *testing.T) {
	cluster, request := withSource(t, inImages)
	_, _ = cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request)
	asked := cluster.volume(t, "2").Spec
	if asked.Layout != stowagev1alpha1.LayoutImage || asked.FSType != "xfs" || asked.Allocation != stowagev1alpha1.AllocationSparse {
		t.Errorf("it is requested as %+v", asked)
	}
}

func TestACopyHasAtLeastWhatItsSourceHas(t *testing.T) {
	for asked, want := range map[string]string{"1": "1Mi", "1Mi": "1Mi", "5000001": "5000192"} {
		cluster, request := withSource(t, inImages)
		request.Capacity = resource.MustParse(asked)
		_, _ = cluster.open(t, LocalBackend("disks", inImages)).Provision(t.Context(), request)
		if capacity := cluster.volume(t, "2").Spec.Capacity; capacity.String() != want {
			t.Errorf("for a request of %s it is %s", asked, capacity.String())
		}
	}
}

func TestACopyThatIsImpossibleIsNeverRequested(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*stowagev1alpha1.NodeVolume, *backend.Request)
		kind   backend.ErrorKind
		text   string
	}{
		"another claim's": {func(_ *stowagev1alpha1.NodeVolume, request *backend.Request) {
			request.Source.Claim.UID = "forged"
		}, backend.Conflict, "wasn't made for claim"},
		"another namespace's": {func(_ *stowagev1alpha1.NodeVolume, request *backend.Request) {
			request.Claim.Namespace = "other"
		}, backend.Conflict, "wasn't made for claim"},
		"of another namespace than it is said": {func(_ *stowagev1alpha1.NodeVolume, request *backend.Request) {
			request.Source.Namespace = "other"
		}, backend.Conflict, "wasn't made for claims of namespace other"},
		"being removed": {func(source *stowagev1alpha1.NodeVolume, _ *backend.Request) {
			source.Spec.RemoveData = true
		}, backend.Invalid, "is being removed"},
		"another backend's": {func(source *stowagev1alpha1.NodeVolume, _ *backend.Request) {
			source.Spec.Backend = "slow"
		}, backend.Conflict, "belongs to backend slow"},
		"of another mode": {func(_ *stowagev1alpha1.NodeVolume, request *backend.Request) {
			request.VolumeMode = corev1.PersistentVolumeBlock
		}, backend.Invalid, "has volumeMode Filesystem"},
		"of another file system": {func(_ *stowagev1alpha1.NodeVolume, request *backend.Request) {
			request.FSType = "xfs"
		}, backend.Invalid, "has the file system of its disk"},
		"on a node that is gone": {func(source *stowagev1alpha1.NodeVolume, _ *backend.Request) {
			source.Spec.NodeName = "node-3"
		}, backend.Unavailable, "node node-3"},
		"where its class has nothing": {func(_ *stowagev1alpha1.NodeVolume, request *backend.Request) {
			request.Topologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}}
		}, backend.Invalid, "allowedTopologies"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, request := withSource(t)
			source := cluster.volume(t, "1")
			test.change(source, &request)
			if err := cluster.Update(t.Context(), source); err != nil {
				t.Fatal(err)
			}
			_, err := cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request)
			expectError(t, err, test.kind, test.text)
			if cluster.has(request.ID) {
				t.Error("it is requested")
			}
		})
	}
}

func TestACopyOfWhatIsNotMadeYetWaits(t *testing.T) {
	cluster, request := withSource(t)
	disks := cluster.open(t, LocalBackend("disks"))
	cluster.say(t, "1", metav1.ConditionFalse, stowagev1alpha1.ReasonPending, "")
	_, err := disks.Provision(t.Context(), request)
	expectError(t, err, backend.Unavailable, "isn't made yet")
}

func TestAnEmptyVolumeIsNeverACopy(t *testing.T) {
	cluster, request := withSource(t)
	disks := cluster.open(t, LocalBackend("disks"))
	_, _ = disks.Provision(t.Context(), backendtest.Request("2"))
	cluster.actAsAgent(t.Context())
	_, err := disks.Provision(t.Context(), request)
	expectError(t, err, backend.Conflict, "began empty")
}

func TestARestoredVolumeIsCopiedForTheClaimThatItIsBoundTo(t *testing.T) {
	restored := func(request backend.Request) *corev1.PersistentVolume {
		pv := Volume(request.Source.ID)
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: stowagev1alpha1.LocalDriver, VolumeHandle: request.Source.ID,
		}}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: request.Source.Claim.Namespace, Name: "again", UID: "new"}
		return pv
	}
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		kind   backend.ErrorKind
	}{
		"it is bound to that claim": {func(*corev1.PersistentVolume) {}, backend.InProgress},
		"it is bound to another":    {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "other" }, backend.Conflict},
		"it is bound to none":       {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, backend.Conflict},
		"it is another driver's":    {func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other" }, backend.Conflict},
		"it is another volume":      {func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "other" }, backend.Conflict},
		"there is none":             {nil, backend.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, request := withSource(t)
			request.Source.Claim.Name, request.Source.Claim.UID = "again", "new"
			if test.change != nil {
				pv := restored(request)
				test.change(pv)
				if err := cluster.Create(t.Context(), pv); err != nil {
					t.Fatal(err)
				}
			}
			_, err := cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request)
			if backend.KindOf(err) != test.kind {
				t.Errorf("got %v", err)
			}
		})
	}
}
