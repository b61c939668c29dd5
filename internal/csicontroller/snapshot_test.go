package csicontroller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/named"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// uid is that of a VolumeSnapshot, and theirs the name that csi-snapshotter gives its snapshot.
const uid, theirs = "6f0c2f2e-bbbb-4c5e-9d1e-0123456789ab", "snapshot-" + uid

func TestASnapshotIsMadeOnceRestoredAndDeleted(t *testing.T) {
	w := serve(t)
	source := w.made(t, asking("a", mebibyte))
	kept := w.snapshot(t, "s", source)
	if again := w.snapshot(t, "s", source); again != kept || !named.IsSnapshot(kept) {
		t.Errorf("it made %s and %s", kept, again)
	}
	_, err := w.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "s", SourceVolumeId: w.made(t, asking("b", mebibyte))})
	mustBe(t, err, codes.AlreadyExists)
	restored := w.made(t, copying("restored", "", kept))
	if of := w.storage.Source(restored); of == nil || of.Snapshot != kept {
		t.Errorf("it is restored from %+v", of)
	}

	for range 2 {
		_, err = w.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: kept})
		mustBe(t, err, codes.OK)
	}
	w.made(t, copying("restored", "", kept)) // a repeat, after the snapshot is gone
	_, err = w.CreateVolume(t.Context(), copying("late", "", kept))
	mustBe(t, err, codes.NotFound)
}

// claimed makes the volume of a claim, and its PersistentVolume.
func (w *world) claimed(t *testing.T, changes ...func(*corev1.PersistentVolume)) {
	t.Helper()
	claim := stowagev1alpha1.ClaimReference{Namespace: "team", Name: "data", UID: types.UID(strings.TrimPrefix(ofClaim, "pvc-"))}
	w.storage.Begin(ofClaim, backend.Request{Claim: claim})
	pv := volumeObject(ofClaim)
	pv.Annotations = map[string]string{volume.AnnDynamicallyProvisioned: stowagev1alpha1.GCEDriver}
	pv.Spec.CSI.VolumeAttributes = map[string]string{stowagev1alpha1.BackendAttribute: "disks"}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	for _, change := range changes {
		change(pv)
	}
	if err := w.cluster.Create(t.Context(), pv); err != nil {
		t.Fatal(err)
	}
}

// begun makes the content of a VolumeSnapshot, with the label of a StorageBackend if the manager has begun its snapshot.
func (w *world) begun(t *testing.T, label string) {
	t.Helper()
	content := &snapshotv1.VolumeSnapshotContent{}
	content.Name, content.Labels = snapshots.ContentName(uid), map[string]string{stowagev1alpha1.BackendLabel: label}
	if err := w.cluster.Create(t.Context(), content); err != nil {
		t.Fatal(err)
	}
}

// listed are the ids of the snapshots in an answer.
func (w *world) listed(t *testing.T, req *csispec.ListSnapshotsRequest) (ids []string) {
	t.Helper()
	list, err := w.ListSnapshots(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list.GetEntries() {
		ids = append(ids, entry.GetSnapshot().GetSnapshotId())
	}
	return ids
}

func TestTheVolumeOfAClaimHasSnapshots(t *testing.T) {
	w := serve(t)
	w.claimed(t)
	kept := w.snapshot(t, "backup-1", ofClaim)
	if !named.IsSnapshot(kept) {
		t.Errorf("its id is %s, which the manager may give a snapshot, too", kept)
	}
	restored := w.made(t, copying("restored", "", kept))
	if of := w.storage.Source(restored); of == nil || of.Snapshot != kept || of.Namespace != "team" {
		t.Errorf("it is restored from %+v", of)
	}

	// A repeat, after the claim is gone.
	w.forget(t, ofClaim)
	if again := w.snapshot(t, "backup-1", ofClaim); again != kept {
		t.Errorf("a repeat made %s", again)
	}
	_, err := w.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "backup-1", SourceVolumeId: "pvc-other"})
	mustBe(t, err, codes.AlreadyExists)
	_, err = w.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "backup-2", SourceVolumeId: ofClaim})
	mustBe(t, err, codes.NotFound)
	_, err = w.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: kept})
	mustBe(t, err, codes.OK)
	if left := w.storage.Snapshots(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestOnlyTheVolumesThatItsStorageBackendMadeForClaimsHaveSnapshots(t *testing.T) {
	for what, change := range map[string]func(*corev1.PersistentVolume){
		"made by hand": func(pv *corev1.PersistentVolume) { pv.Annotations = nil },
		"of another StorageBackend": func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute] = "others"
		},
		"of no StorageBackend": func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeAttributes = nil },
		"of no claim":          func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil },
	} {
		t.Run(what, func(t *testing.T) {
			w := serve(t)
			w.claimed(t, change)
			_, err := w.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "backup", SourceVolumeId: ofClaim})
			mustBe(t, err, codes.NotFound)
			if made := w.storage.Snapshots(); len(made) > 0 {
				t.Errorf("it made %v", made)
			}
		})
	}
}

func TestAPersistentVolumeThatTheCacheStillHasIsReadLive(t *testing.T) {
	w := serve(t)
	w.claimed(t)
	w.cached, _ = w.volumesOf(t.Context(), stowagev1alpha1.GCEDriver, ofClaim)
	w.forget(t, ofClaim)
	_, err := w.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "backup", SourceVolumeId: ofClaim})
	mustBe(t, err, codes.NotFound)
}

func TestTheManagerAndCSISnapshotterDoNotMakeOneSnapshotTwice(t *testing.T) {
	asked := &csispec.CreateSnapshotRequest{Name: theirs, SourceVolumeId: ofClaim}
	t.Run("the manager serves the driver", func(t *testing.T) {
		w := serve(t)
		w.claimed(t)
		_, err := w.CreateSnapshot(t.Context(), asked)
		mustBe(t, err, codes.Unavailable)
		if !strings.Contains(err.Error(), "--csi-snapshotter-drivers="+stowagev1alpha1.GCEDriver) {
			t.Errorf("it says %s", err)
		}
	})
	handed := func(t *testing.T) *world {
		w := serveAs(t, func(storage *fake.Backend) backend.Backend { return storage }, stowagev1alpha1.GCEDriver)
		w.claimed(t)
		return w
	}
	t.Run("the manager has begun", func(t *testing.T) {
		w := handed(t)
		w.begun(t, "disks")
		_, err := w.CreateSnapshot(t.Context(), asked)
		mustBe(t, err, codes.Unavailable)
		if made := w.storage.Snapshots(); len(made) > 0 {
			t.Errorf("it made %v", made)
		}
	})
	t.Run("csi-snapshotter begins", func(t *testing.T) {
		w := handed(t)
		w.begun(t, "")
		kept := w.snapshot(t, theirs, ofClaim)

		// The manager had the content in between, and labelled it.
		content := &snapshotv1.VolumeSnapshotContent{}
		content.Name = snapshots.ContentName(uid)
		if err := w.cluster.Get(t.Context(), client.ObjectKeyFromObject(content), content); err != nil {
			t.Fatal(err)
		}
		content.Labels[stowagev1alpha1.BackendLabel] = "disks"
		content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &kept}
		if err := w.cluster.Update(t.Context(), content); err != nil {
			t.Fatal(err)
		}
		if again := w.snapshot(t, theirs, ofClaim); again != kept {
			t.Errorf("a repeat made %s", again)
		}
	})
	t.Run("there is no such content", func(t *testing.T) {
		handed(t).snapshot(t, theirs, ofClaim)
	})
}

func TestSnapshotsAreListedInPages(t *testing.T) {
	w := serve(t)
	w.claimed(t)
	source := w.made(t, asking("a", mebibyte))
	made := []string{w.snapshot(t, "1", source), w.snapshot(t, "2", ofClaim), w.snapshot(t, "3", source)}
	managers, err := w.storage.CreateSnapshot(t.Context(), backend.SnapshotRequest{ID: theirs, Owner: uid, Namespace: "team", Volume: ofClaim})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for token, more := "", true; more; more = token != "" {
		list, err := w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{MaxEntries: 2, StartingToken: token})
		if err != nil || len(list.GetEntries()) > 2 {
			t.Fatalf("a page has %d: %v", len(list.GetEntries()), err)
		}
		for _, entry := range list.GetEntries() {
			seen = append(seen, entry.GetSnapshot().GetSnapshotId())
		}
		token = list.GetNextToken()
	}
	if !slices.Equal(seen, slices.Sorted(slices.Values(made))) {
		t.Errorf("made are %q, and listed %q", made, seen)
	}
	if of := w.listed(t, &csispec.ListSnapshotsRequest{SourceVolumeId: ofClaim}); !slices.Equal(of, made[1:2]) {
		t.Errorf("those of a volume are %q, of %q", of, made)
	}
	for id, want := range map[string]int{made[0]: 1, managers.Handle: 1, "no-id-of-ours": 0, "snapshots/" + backend.SnapshotID(named.UID("", "", "", "never")): 0} {
		if found := w.listed(t, &csispec.ListSnapshotsRequest{SnapshotId: id}); len(found) != want || want == 1 && found[0] != id {
			t.Errorf("asked for %s, it lists %q", id, found)
		}
	}
	if of := w.listed(t, &csispec.ListSnapshotsRequest{SnapshotId: made[0], SourceVolumeId: ofClaim}); len(of) > 0 {
		t.Errorf("it lists %q, though it is another volume's", of)
	}
	for token, most := range map[string]int32{"invalid-token": 0, strings.Repeat("a", 1<<20): 0} {
		_, err = w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{StartingToken: token, MaxEntries: most})
		mustBe(t, err, codes.Aborted)
	}
	_, err = w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{MaxEntries: -1})
	mustBe(t, err, codes.InvalidArgument)
}

func TestASnapshotThatIsUploadedIsListedAsNotReady(t *testing.T) {
	w := serve(t)
	w.storage.SetUploading(true)
	kept := w.snapshot(t, "s", w.made(t, asking("a", mebibyte)))
	ready := func() bool {
		list, err := w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{SnapshotId: kept})
		if err != nil || len(list.GetEntries()) != 1 {
			t.Fatalf("it lists %v: %v", list.GetEntries(), err)
		}
		return list.GetEntries()[0].GetSnapshot().GetReadyToUse()
	}
	if ready() {
		t.Error("it is listed as ready")
	}
	w.storage.SetUploading(false)
	if !ready() {
		t.Error("it isn't listed as ready")
	}
}

// saying changes what a backend says of snapshots.
type saying struct {
	*fake.Backend
	change func(*backend.Snapshot)
}

func (s saying) FindSnapshot(ctx context.Context, handle string) (*backend.Snapshot, error) {
	found, err := s.Backend.FindSnapshot(ctx, handle)
	if err == nil {
		s.change(found)
	}
	return found, err
}

func TestASnapshotThatIsBeingMadeOrIsOfAnotherOwnerIsNotListed(t *testing.T) {
	for what, change := range map[string]func(*backend.Snapshot){
		"being made":       func(found *backend.Snapshot) { found.Created = time.Time{} },
		"of another owner": func(found *backend.Snapshot) { found.Volume = "" },
	} {
		w := serveAs(t, func(storage *fake.Backend) backend.Backend { return saying{storage, change} })
		kept := w.snapshot(t, "s", w.made(t, asking("a", mebibyte)))
		for _, req := range []*csispec.ListSnapshotsRequest{{}, {SnapshotId: kept}} {
			if found := w.listed(t, req); len(found) > 0 {
				t.Errorf("one that is %s is listed: %q", what, found)
			}
		}
	}
}
