package csi_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

// CreateSnapshot makes a snapshot whose id is not its name.
func (d *driver) CreateSnapshot(_ context.Context, request *csispec.CreateSnapshotRequest) (*csispec.CreateSnapshotResponse, error) {
	id := "id of " + request.GetName()
	made, of := d.snapshots[id], d.volumes[request.GetSourceVolumeId()]
	switch {
	case made != nil && made.GetSourceVolumeId() != request.GetSourceVolumeId():
		return nil, status.Error(codes.AlreadyExists, "it is of another volume")
	case made == nil && of == nil:
		return nil, status.Error(codes.NotFound, "there is no such volume")
	case made == nil:
		made = &csispec.Snapshot{
			SnapshotId: id, SourceVolumeId: request.GetSourceVolumeId(), ReadyToUse: true,
			SizeBytes: of.made.GetCapacityBytes(), CreationTime: timestamppb.New(time.Unix(7, 0)),
		}
		d.snapshots[id] = made
	}
	answer := &csispec.Snapshot{
		SnapshotId: made.GetSnapshotId(), SourceVolumeId: made.GetSourceVolumeId(), ReadyToUse: made.GetReadyToUse(),
		SizeBytes: made.GetSizeBytes(), CreationTime: made.GetCreationTime(),
	}
	if d.liesOfSnapshots != nil {
		d.liesOfSnapshots(answer)
	}
	return &csispec.CreateSnapshotResponse{Snapshot: answer}, nil
}

// DeleteSnapshot removes a snapshot.
func (d *driver) DeleteSnapshot(_ context.Context, request *csispec.DeleteSnapshotRequest) (*csispec.DeleteSnapshotResponse, error) {
	delete(d.snapshots, request.GetSnapshotId())
	return &csispec.DeleteSnapshotResponse{}, nil
}

// ListSnapshots lists the snapshot of the request, after one that was not requested.
func (d *driver) ListSnapshots(_ context.Context, request *csispec.ListSnapshotsRequest) (*csispec.ListSnapshotsResponse, error) {
	answer := &csispec.ListSnapshotsResponse{Entries: []*csispec.ListSnapshotsResponse_Entry{{Snapshot: &csispec.Snapshot{SnapshotId: "strange"}}}}
	if made := d.snapshots[request.GetSnapshotId()]; made != nil {
		answer.Entries = append(answer.Entries, &csispec.ListSnapshotsResponse_Entry{Snapshot: made})
	}
	return answer, nil
}

func snapshotRequest() backend.SnapshotRequest {
	return backend.SnapshotRequest{ID: "snapshot-1", Owner: "1", Volume: backendtest.Request("1").ID, Parameters: map[string]string{"tier": "cold"}}
}

func (w *world) snapshotter() backend.Snapshotter { return w.Backend.(backend.Snapshotter) }

// withVolume is a world with a volume, of which snapshots can be made.
func withVolume(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	if _, err := w.Provision(t.Context(), backendtest.Request("1")); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTheContractOfSnapshots(t *testing.T) {
	backendtest.SnapshotContract(t, func(t *testing.T) (backend.Backend, func(string) bool) {
		w := newWorld(t)
		return w.Backend, w.has
	})
}

func TestTheCallsOfASnapshotHaveTheSecretAndTheParameters(t *testing.T) {
	w := newWorld(t)
	w.secrets["maker"] = map[string][]byte{"key": []byte("hush")}
	w.object.Spec.CSI.Secrets.Provision = &stowagev1alpha1.SecretReference{Name: "maker"}
	w.open(t)
	if _, err := w.Provision(t.Context(), backendtest.Request("1")); err != nil {
		t.Fatal(err)
	}
	made, err := w.snapshotter().CreateSnapshot(t.Context(), snapshotRequest())
	if err != nil || !made.Created.Equal(time.Unix(7, 0)) || made.RestoreSize.Value() != 1<<20 || !made.Ready {
		t.Fatalf("made is %+v, %v", made, err)
	}
	if _, err := w.snapshotter().FindSnapshot(t.Context(), made.Handle); err != nil {
		t.Fatal(err)
	}
	if err := w.snapshotter().DeleteSnapshot(t.Context(), made.Handle); err != nil {
		t.Fatal(err)
	}
	asked := did[*csispec.CreateSnapshotRequest](w.driver)[0]
	if asked.GetParameters()["tier"] != "cold" || asked.GetSecrets()["key"] != "hush" ||
		did[*csispec.ListSnapshotsRequest](w.driver)[0].GetSecrets()["key"] != "hush" ||
		did[*csispec.DeleteSnapshotRequest](w.driver)[0].GetSecrets()["key"] != "hush" {
		t.Errorf("requested is %v, and the others lack the secret", asked)
	}
}

func TestAnErrorOfASnapshotIsFinalOnlyIfThereIsNone(t *testing.T) {
	for code, want := range map[codes.Code]backend.ErrorKind{
		codes.InvalidArgument: backend.Invalid, codes.Unimplemented: backend.Invalid, codes.NotFound: backend.NotFound,
		codes.FailedPrecondition: backend.Unavailable, codes.PermissionDenied: backend.Unavailable, codes.AlreadyExists: backend.Conflict,
		codes.Aborted: backend.InProgress, codes.DeadlineExceeded: backend.InProgress, codes.ResourceExhausted: backend.Exhausted,
		codes.Internal: "", codes.Unknown: "", codes.Unavailable: "", codes.Canceled: "",
	} {
		w := newWorld(t)
		w.answersTo("CreateSnapshot", status.Error(code, strings.Repeat("no", 5000)))
		_, err := w.snapshotter().CreateSnapshot(t.Context(), snapshotRequest())
		if err == nil || backend.KindOf(err) != want || len(err.Error()) > 1000 {
			t.Errorf("%s has %q, with %d bytes", code, backend.KindOf(err), len(err.Error()))
		}
	}
}

func TestASnapshotThatDidNotReachTheDriverSaysNothingOfAnEarlierOne(t *testing.T) {
	for name, change := range map[string]func(*world){
		"a driver with another name": func(w *world) { w.name = "other.example.com" },
		"a driver that is away":      func(w *world) { w.server.Stop() },
		"a Secret that is missing": func(w *world) {
			w.object.Spec.CSI.Secrets.Provision = &stowagev1alpha1.SecretReference{Name: "absent"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(w)
			w.open(t)
			if _, err := w.snapshotter().CreateSnapshot(t.Context(), snapshotRequest()); !errors.Is(err, backend.Unavailable) {
				t.Errorf("it has %v", err)
			}
		})
	}
}

func TestAWrongAnswerIsNoSnapshot(t *testing.T) {
	for name, test := range map[string]struct {
		lies func(*csispec.Snapshot)
		kind backend.ErrorKind
	}{
		"without an id":     {func(s *csispec.Snapshot) { s.SnapshotId = "" }, backend.InProgress},
		"with a long id":    {func(s *csispec.Snapshot) { s.SnapshotId = strings.Repeat("x", 4097) }, backend.InProgress},
		"of another volume": {func(s *csispec.Snapshot) { s.SourceVolumeId = "other" }, backend.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			w := withVolume(t)
			w.liesOfSnapshots = test.lies
			if _, err := w.snapshotter().CreateSnapshot(t.Context(), snapshotRequest()); !errors.Is(err, test.kind) {
				t.Errorf("it has %v", err)
			}
			if len(did[*csispec.DeleteSnapshotRequest](w.driver)) > 0 {
				t.Error("it was deleted")
			}
		})
	}
	w := withVolume(t)
	w.liesOfSnapshots = func(s *csispec.Snapshot) { s.SizeBytes, s.CreationTime = -1, &timestamppb.Timestamp{Nanos: -1} }
	made, err := w.snapshotter().CreateSnapshot(t.Context(), snapshotRequest())
	if err != nil || !made.Created.IsZero() || made.RestoreSize.Sign() != 0 {
		t.Errorf("with a size and a time that can't be it is %+v, %v", made, err)
	}
}

func TestADriverWithoutSnapshotsGetsNoCall(t *testing.T) {
	w := newWorld(t)
	w.abilities = w.abilities[:1]
	if _, err := w.snapshotter().CreateSnapshot(t.Context(), snapshotRequest()); !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), "CREATE_DELETE_SNAPSHOT") {
		t.Errorf("making has %v", err)
	}
	restore := backendtest.Request("2")
	restore.Source = &backend.Source{Snapshot: "a"}
	if _, err := w.Provision(t.Context(), restore); !errors.Is(err, backend.Invalid) {
		t.Errorf("restoring has %v", err)
	}
	if found, err := w.snapshotter().FindSnapshot(t.Context(), "a"); err != nil || !found.Ready || found.Handle != "a" {
		t.Errorf("a snapshot that isn't listed is %+v, %v", found, err)
	}
	if len(did[*csispec.CreateSnapshotRequest](w.driver))+len(did[*csispec.CreateVolumeRequest](w.driver))+len(did[*csispec.ListSnapshotsRequest](w.driver)) > 0 {
		t.Error("the driver was called")
	}
}

func TestARestoreWithOtherContentIsRemoved(t *testing.T) {
	w := withVolume(t)
	made, err := w.snapshotter().CreateSnapshot(t.Context(), snapshotRequest())
	if err != nil {
		t.Fatal(err)
	}
	w.lies = func(volume *csispec.Volume) { volume.ContentSource = nil }
	restore := backendtest.Request("2")
	restore.Source = &backend.Source{Snapshot: made.Handle}
	if _, err := w.Provision(t.Context(), restore); !errors.Is(err, backend.Invalid) || w.has(restore.ID) {
		t.Errorf("it has %v, and is there: %t", err, w.has(restore.ID))
	}
}

func TestARestoreIsUndoneByItsSnapshot(t *testing.T) {
	w := withVolume(t)
	made, err := w.snapshotter().CreateSnapshot(t.Context(), snapshotRequest())
	if err != nil {
		t.Fatal(err)
	}
	restore := backendtest.Request("2")
	restore.Source = &backend.Source{Snapshot: made.Handle}
	if _, err := w.Provision(t.Context(), restore); err != nil {
		t.Fatal(err)
	}
	if err := backend.Undo(t.Context(), w.Backend, restore); err != nil || w.has(restore.ID) {
		t.Errorf("it has %v, and is there: %t", err, w.has(restore.ID))
	}
	restore.Source = &backend.Source{}
	if err := backend.Undo(t.Context(), w.Backend, restore); !errors.Is(err, backend.Invalid) {
		t.Errorf("without its source it has %v", err)
	}
}
