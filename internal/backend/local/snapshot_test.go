package local_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/program"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestLocalKeepsTheContractOfSnapshots(t *testing.T) {
	for name, options := range map[string][]func(*stowagev1alpha1.StorageBackend){"Directory": nil, "Image": {inImages}} {
		t.Run(name, func(t *testing.T) {
			backendtest.SnapshotContract(t, func(t *testing.T) (backend.Backend, func(string) bool) {
				cluster := newCluster(t, Node("node-1"), Node("node-2"))
				cluster.runAgent(t)
				return cluster.open(t, LocalBackend("disks", options...)), cluster.has
			})
		})
	}
}

// disksWithSnapshots are the disks of a cluster, with one volume in an image on node-2.
type disksWithSnapshots struct {
	cluster
	backend.Backend
	backend.Snapshotter
	request backend.SnapshotRequest
}

func withVolume(t *testing.T) disksWithSnapshots {
	t.Helper()
	cluster, request := newCluster(t, Node("node-1"), Node("node-2")), backendtest.Request("1")
	request.Node = Node("node-2")
	_, _ = cluster.open(t, LocalBackend("disks", inImages)).Provision(t.Context(), request)
	cluster.actAsAgent(t.Context())
	opened := cluster.open(t, LocalBackend("disks", inImages))
	return disksWithSnapshots{cluster, opened, opened.(backend.Snapshotter), backend.SnapshotRequest{ID: "snapshot-a", Owner: "a", Namespace: "default", Volume: request.ID}}
}

func (d disksWithSnapshots) nodeVolume(t *testing.T, name string) *stowagev1alpha1.NodeVolume {
	t.Helper()
	volume := &stowagev1alpha1.NodeVolume{}
	if err := d.Get(t.Context(), client.ObjectKey{Name: name}, volume); err != nil {
		t.Fatal(err)
	}
	return volume
}

// made is the NodeVolume of the snapshot, which its agent has made.
func (d disksWithSnapshots) made(t *testing.T) *stowagev1alpha1.NodeVolume {
	t.Helper()
	_, _ = d.CreateSnapshot(t.Context(), d.request)
	d.actAsAgent(t.Context())
	return d.nodeVolume(t, d.request.ID)
}

// reported writes what the agent says of the snapshot.
func (d disksWithSnapshots) reported(t *testing.T, reason, message string) {
	t.Helper()
	snapshot := d.nodeVolume(t, d.request.ID)
	d.provisioned(snapshot, metav1.ConditionFalse, reason, message)
	if err := d.Status().Update(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
}

func TestASnapshotIsRequestedBesideItsVolumeAndAsItsKind(t *testing.T) {
	d := withVolume(t)
	if _, err := d.CreateSnapshot(t.Context(), d.request); !backend.Unfinished(err) {
		t.Fatal(err)
	}
	asked, of := d.nodeVolume(t, "snapshot-a").Spec, d.volume(t, "1").Spec
	if asked.SnapshotUID != "a" || asked.Source != d.request.Volume || asked.ClaimRef != of.ClaimRef {
		t.Errorf("it is requested as %+v", asked)
	}
	asked.SnapshotUID, asked.Source = "", ""
	if asked != of {
		t.Errorf("it is requested as %+v, and its volume is %+v", asked, of)
	}
}

func TestACopyOfADirectoryWithoutALimitIsAsLargeAsWhatItHas(t *testing.T) {
	d := withVolume(t)
	of := d.volume(t, "1")
	of.Status.Used = new(resource.MustParse("10Mi"))
	if err := d.Status().Update(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	_, _ = d.CreateSnapshot(t.Context(), d.request)
	clone := backendtest.Request("2")
	clone.Source = &backend.Source{ID: d.request.Volume, Claim: of.Spec.ClaimRef}
	_, _ = d.Provision(t.Context(), clone)
	for _, name := range []string{"snapshot-a", clone.ID} {
		if asked := d.nodeVolume(t, name).Spec.Capacity; asked.String() != "10Mi" {
			t.Errorf("%s asks for %s", name, asked.String())
		}
	}
}

func TestNothingStaysWhereTheAPIServerKnowsNoSnapshots(t *testing.T) {
	d := withVolume(t)
	scheme, err := program.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	older := cluster{fakeclient.NewClientBuilder().WithScheme(scheme).WithObjects(d.volume(t, "1"), Node("node-2")).WithStatusSubresource(&stowagev1alpha1.NodeVolume{}).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if volume, is := object.(*stowagev1alpha1.NodeVolume); is {
				volume.Spec.SnapshotUID = ""
			}
			return api.Create(ctx, object, options...)
		}}).Build()}
	_, err = older.openBare(t, LocalBackend("disks", inImages)).(backend.Snapshotter).CreateSnapshot(t.Context(), d.request)
	expectError(t, err, backend.Unavailable, "install the CRDs of this version")
	if older.has("snapshot-a") {
		t.Error("it is there")
	}
}

func TestASnapshotHasTheTimeAtWhichItsAgentReportedIt(t *testing.T) {
	d := withVolume(t)
	d.made(t)
	first, err := d.CreateSnapshot(t.Context(), d.request)
	if err != nil || !first.Ready || first.Created.IsZero() || first.RestoreSize.Cmp(d.volume(t, "1").Spec.Capacity) != 0 {
		t.Errorf("it is %+v, %v", first, err)
	}
}

func TestAnAgentThatHasNotAnsweredIsReportedAfterAWhile(t *testing.T) {
	for kind, age := range map[backend.ErrorKind]time.Duration{backend.Queued: 0, backend.InProgress: time.Hour} {
		d := withVolume(t)
		_, _ = d.CreateSnapshot(t.Context(), d.request)
		snapshot := d.nodeVolume(t, "snapshot-a")
		snapshot.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
		if err := d.Update(t.Context(), snapshot); err != nil {
			t.Fatal(err)
		}
		_, err := d.CreateSnapshot(t.Context(), d.request)
		expectError(t, err, kind, "waiting for the agent of node node-2 to make snapshot snapshot-a")
	}
}

func TestWhatKeepsAnAgentFromMakingASnapshotIsReported(t *testing.T) {
	for reason, kind := range map[string]backend.ErrorKind{
		stowagev1alpha1.ReasonInUse:     backend.InProgress,
		stowagev1alpha1.ReasonExhausted: backend.Exhausted,
	} {
		d := withVolume(t)
		_, _ = d.CreateSnapshot(t.Context(), d.request)
		d.reported(t, reason, "because")
		_, err := d.CreateSnapshot(t.Context(), d.request)
		expectError(t, err, kind, "node node-2: because")
		if !d.nodeVolume(t, "snapshot-a").DeletionTimestamp.IsZero() {
			t.Errorf("after %s it is deleted", reason)
		}
	}
}

func TestNothingStaysOfASnapshotThatItsAgentRefuses(t *testing.T) {
	d := withVolume(t)
	_, _ = d.CreateSnapshot(t.Context(), d.request)
	d.reported(t, stowagev1alpha1.ReasonInvalid, "because")
	_, err := d.CreateSnapshot(t.Context(), d.request)
	expectError(t, err, backend.Invalid, "node node-2: because")
	if refused := d.nodeVolume(t, "snapshot-a"); refused.DeletionTimestamp.IsZero() || !refused.Spec.RemoveData {
		t.Error("it isn't deleted")
	}
	_, err = d.CreateSnapshot(t.Context(), d.request)
	expectError(t, err, backend.InProgress, "waiting for the deletion of an earlier NodeVolume")
}

func TestASnapshotOfAVolumeThatGrowsInTheMiddleIsRequestedAgainWithItsSize(t *testing.T) {
	d := withVolume(t)
	_, _ = d.CreateSnapshot(t.Context(), d.request)
	grown := d.volume(t, "1")
	grown.Status.Capacity = new(resource.MustParse("2Gi"))
	if err := d.Status().Update(t.Context(), grown); err != nil {
		t.Fatal(err)
	}
	d.reported(t, stowagev1alpha1.ReasonInvalid, "its image has 2Gi")
	_, err := d.CreateSnapshot(t.Context(), d.request)
	expectError(t, err, backend.Invalid, "its image has 2Gi")
	refused := d.nodeVolume(t, "snapshot-a") // which its agent removes
	refused.Finalizers = nil
	if err := d.Update(t.Context(), refused); err != nil {
		t.Fatal(err)
	}

	made := d.made(t)

	if made.Spec.Capacity.String() != "2Gi" {
		t.Errorf("it has %s", made.Spec.Capacity.String())
	}
}

func TestAnUnwantedSnapshotIsNotAwaited(t *testing.T) {
	d := withVolume(t)
	_, _ = d.CreateSnapshot(t.Context(), d.request)
	d.request.Unwanted = true
	made, err := d.CreateSnapshot(t.Context(), d.request)
	if err != nil || made.Handle != "snapshot-a" || made.Ready {
		t.Fatalf("it is %+v, %v", made, err)
	}
	if err := d.DeleteSnapshot(t.Context(), "snapshot-a"); !backend.Unfinished(err) {
		t.Fatal(err)
	}
	if deleted := d.nodeVolume(t, "snapshot-a"); deleted.DeletionTimestamp.IsZero() || !deleted.Spec.RemoveData {
		t.Error("it isn't deleted")
	}
}

func TestASnapshotThatIsImpossibleIsNeverRequested(t *testing.T) {
	for name, test := range map[string]struct {
		change func(of *stowagev1alpha1.NodeVolume, request *backend.SnapshotRequest)
		kind   backend.ErrorKind
		text   string
	}{
		"that isn't wanted, of a volume that isn't there": {func(of *stowagev1alpha1.NodeVolume, request *backend.SnapshotRequest) {
			of.Status, request.Unwanted = stowagev1alpha1.NodeVolumeStatus{}, true
		}, backend.NotFound, "was begun"},
		"in another namespace than its volume": {func(_ *stowagev1alpha1.NodeVolume, request *backend.SnapshotRequest) {
			request.Namespace = "other"
		}, backend.Invalid, "was made for a claim of namespace default"},
		"with parameters": {func(_ *stowagev1alpha1.NodeVolume, request *backend.SnapshotRequest) {
			request.Parameters = map[string]string{"a": "b"}
		}, backend.Invalid, "have no parameters"},
		"of another backend's volume": {func(of *stowagev1alpha1.NodeVolume, _ *backend.SnapshotRequest) {
			of.Spec.Backend = "slow"
		}, backend.Conflict, "belongs to backend slow"},
		"of a volume that is being removed": {func(of *stowagev1alpha1.NodeVolume, _ *backend.SnapshotRequest) {
			of.Spec.RemoveData = true
		}, backend.NotFound, "is being removed"},
		"of another snapshot": {func(of *stowagev1alpha1.NodeVolume, _ *backend.SnapshotRequest) {
			of.Spec.ClaimRef.UID = "other"
		}, backend.Conflict, "it is left alone"},
		"under a name of another form": {func(_ *stowagev1alpha1.NodeVolume, request *backend.SnapshotRequest) {
			request.Owner = types.UID("A-B")
			request.ID = backend.SnapshotID(request.Owner)
		}, backend.Invalid, "is no snapshot of a local volume"},
	} {
		t.Run(name, func(t *testing.T) {
			d := withVolume(t)
			of := d.volume(t, "1")
			test.change(of, &d.request)
			if err := d.Update(t.Context(), of); err != nil {
				t.Fatal(err)
			}
			_, err := d.CreateSnapshot(t.Context(), d.request)
			expectError(t, err, test.kind, test.text)
			if d.has(d.request.ID) {
				t.Error("it is requested")
			}
		})
	}
}

func TestASnapshotOfWhatIsNotMadeOrLostWaits(t *testing.T) {
	for text, say := range map[string]func(*testing.T, disksWithSnapshots){
		"isn't made yet": func(t *testing.T, d disksWithSnapshots) {
			d.say(t, "1", metav1.ConditionFalse, stowagev1alpha1.ReasonPending, "")
		},
		"is lost": func(t *testing.T, d disksWithSnapshots) { d.lose(t, backendtest.Request("1").ID) },
	} {
		d := withVolume(t)
		say(t, d)
		_, err := d.CreateSnapshot(t.Context(), d.request)
		expectError(t, err, backend.Unavailable, text)
	}
}

// lose has the agent report that what it made isn't there.
func (d disksWithSnapshots) lose(t *testing.T, name string) {
	t.Helper()
	volume := d.nodeVolume(t, name)
	volume.Status.Conditions = append(volume.Status.Conditions, metav1.Condition{
		Type: stowagev1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: stowagev1alpha1.ReasonLost,
	})
	if err := d.Status().Update(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyASnapshotOfTheBackendIsTakenForOne(t *testing.T) {
	for handle, kind := range map[string]backend.ErrorKind{
		backendtest.Request("1").ID:     backend.Invalid,
		"snapshot-/../a":                backend.Invalid,
		"snapshot-of-another":           backend.Conflict,
		"snapshot-for-none":             backend.Conflict,
		"snapshot-for-another-snapshot": backend.Conflict,
	} {
		t.Run(handle, func(t *testing.T) {
			d := withVolume(t)
			for name, change := range map[string]func(*stowagev1alpha1.NodeVolumeSpec){
				"snapshot-of-another": func(spec *stowagev1alpha1.NodeVolumeSpec) { spec.SnapshotUID, spec.Backend = "of-another", "other" },
				"snapshot-for-none":   func(*stowagev1alpha1.NodeVolumeSpec) {}, "snapshot-for-another-snapshot": func(spec *stowagev1alpha1.NodeVolumeSpec) { spec.SnapshotUID = "b" },
			} {
				there := &stowagev1alpha1.NodeVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: d.volume(t, "1").Spec}
				change(&there.Spec)
				if err := d.Create(t.Context(), there); err != nil {
					t.Fatal(err)
				}
			}
			_, err := d.FindSnapshot(t.Context(), handle)
			expectError(t, err, kind, "")
			expectError(t, d.DeleteSnapshot(t.Context(), handle), kind, "")
			all := &stowagev1alpha1.NodeVolumeList{}
			if err := d.cluster.List(t.Context(), all); err != nil || len(all.Items) != 4 {
				t.Errorf("%d NodeVolumes are left, %v", len(all.Items), err)
			}
		})
	}
}

func TestASnapshotIsNoVolume(t *testing.T) {
	d := withVolume(t)
	d.made(t)
	expectError(t, d.Delete(t.Context(), "snapshot-a"), backend.Conflict, "it is left alone")
	held, err := d.Backend.(backend.Lister).List(t.Context())
	if err != nil || len(held) != 2 || held[0].Snapshot != "" || held[1].Snapshot != "a" {
		t.Errorf("it holds %+v, %v", held, err)
	}
	d.request.Volume, d.request.ID, d.request.Owner = "snapshot-a", "snapshot-b", "b"
	_, err = d.CreateSnapshot(t.Context(), d.request)
	expectError(t, err, backend.Conflict, "it is left alone")
}

func TestASnapshotIsRestoredBesideIt(t *testing.T) {
	d := withVolume(t)
	d.made(t)
	request := backendtest.Request("2")
	request.Source = &backend.Source{Snapshot: "snapshot-a"}
	if _, err := d.Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
		t.Fatal(err)
	}
	if asked := d.volume(t, "2").Spec; asked.NodeName != "node-2" || asked.Source != "snapshot-a" || asked.SnapshotUID != "" || asked.ClaimRef != request.Claim || asked.FSType != "xfs" {
		t.Errorf("it is requested as %+v", asked)
	}
}

func TestASnapshotIsRestoredToTheNamespaceThatMayHaveIt(t *testing.T) {
	for name, of := range map[string]backend.Source{
		"that its own lets":                           {Namespace: "default"},
		"that an administrator lets":                  {Given: true},
		"that one lets that an administrator gave it": {Given: true, Namespace: "between"},
	} {
		t.Run(name, func(t *testing.T) {
			d := withVolume(t)
			snapshot, request := d.made(t), backendtest.Request("2")
			of.Snapshot = snapshot.Name
			request.Claim.Namespace, request.Source = "other", &of
			if _, err := d.Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
				t.Fatal(err)
			}
			if asked := d.volume(t, "2").Spec; asked.Source != snapshot.Name || asked.SourceNamespace != "default" || asked.ClaimRef.Namespace != "other" {
				t.Errorf("it is requested as %+v", asked)
			}
		})
	}
}

func TestTheSnapshotOfAnImageIsRestoredWithAnotherVolumeModeWhereAnAdministratorLetsIt(t *testing.T) {
	for name, test := range map[string]struct {
		from, to    corev1.PersistentVolumeMode
		class, want string
	}{
		"a file system as a device":                   {corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock, "", ""},
		"a device as a file system":                   {corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem, "", "xfs"},
		"a device as one that the StorageClass names": {corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem, "ext4", "ext4"},
	} {
		t.Run(name, func(t *testing.T) {
			d := withVolume(t)
			snapshot, request := d.made(t), backendtest.Request("2")
			if snapshot.Spec.VolumeMode = test.from; test.from == corev1.PersistentVolumeBlock {
				snapshot.Spec.FSType = ""
			}
			if err := d.Update(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}
			request.VolumeMode, request.FSType = test.to, test.class
			request.Source = &backend.Source{Snapshot: snapshot.Name, AnyMode: true}
			if _, err := d.Provision(t.Context(), request); !errors.Is(err, backend.InProgress) {
				t.Fatal(err)
			}
			if asked := d.volume(t, "2").Spec; asked.VolumeMode != test.to || asked.FSType != test.want || asked.Layout != stowagev1alpha1.LayoutImage {
				t.Errorf("it is requested as %+v", asked)
			}
		})
	}
}

func TestARestoreThatIsImpossibleIsNeverRequested(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*stowagev1alpha1.NodeVolume, *backend.Request)
		kind   backend.ErrorKind
		text   string
	}{
		"in another namespace": {func(_ *stowagev1alpha1.NodeVolume, request *backend.Request) {
			request.Claim.Namespace = "other"
		}, backend.Invalid, "isn't one of the VolumeSnapshot's namespace"},
		"of one that is being removed": {func(snapshot *stowagev1alpha1.NodeVolume, _ *backend.Request) {
			snapshot.Spec.RemoveData = true
		}, backend.Invalid, "is being removed"},
		"of another backend's": {func(snapshot *stowagev1alpha1.NodeVolume, _ *backend.Request) {
			snapshot.Spec.Backend = "slow"
		}, backend.Conflict, "belongs to backend slow"},
		"of a volume": {func(_ *stowagev1alpha1.NodeVolume, request *backend.Request) {
			request.Source.Snapshot = backendtest.Request("1").ID
		}, backend.Invalid, "is no snapshot"},
		"in another mode": {func(_ *stowagev1alpha1.NodeVolume, request *backend.Request) {
			request.VolumeMode = corev1.PersistentVolumeBlock
		}, backend.Invalid, "has volumeMode Filesystem"},
		"in another mode than a directory can have": {func(snapshot *stowagev1alpha1.NodeVolume, request *backend.Request) {
			snapshot.Spec.Layout = stowagev1alpha1.LayoutDirectory
			request.VolumeMode, request.Source.AnyMode = corev1.PersistentVolumeBlock, true
		}, backend.Invalid, "has layout Directory, and only an image can have another volumeMode: ask for Filesystem"},
		"on another node": {func(_ *stowagev1alpha1.NodeVolume, request *backend.Request) {
			request.Node = Node("node-1")
		}, backend.WrongNode, "lies on node node-2"},
	} {
		t.Run(name, func(t *testing.T) {
			d := withVolume(t)
			snapshot, request := d.made(t), backendtest.Request("2")
			request.Source = &backend.Source{Snapshot: snapshot.Name}
			test.change(snapshot, &request)
			if err := d.Update(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}
			_, err := d.Provision(t.Context(), request)
			expectError(t, err, test.kind, test.text)
			if d.has(request.ID) {
				t.Error("it is requested")
			}
		})
	}
}
