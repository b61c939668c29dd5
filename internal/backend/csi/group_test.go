package csi_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// groupDriver is the GroupController service of the driver.
type groupDriver struct {
	csispec.UnimplementedGroupControllerServer
	// able: it claims to make group snapshots.
	able bool
	// groups are by id.
	groups map[string]*csispec.VolumeGroupSnapshot
	// lies changes an answer of CreateVolumeGroupSnapshot.
	lies func(*csispec.VolumeGroupSnapshot)
}

// newGroupDriver is one that claims nothing.
func newGroupDriver() *groupDriver {
	return &groupDriver{groups: map[string]*csispec.VolumeGroupSnapshot{}}
}

func (g *groupDriver) GroupControllerGetCapabilities(context.Context, *csispec.GroupControllerGetCapabilitiesRequest) (*csispec.GroupControllerGetCapabilitiesResponse, error) {
	if !g.able {
		return &csispec.GroupControllerGetCapabilitiesResponse{}, nil
	}
	return &csispec.GroupControllerGetCapabilitiesResponse{Capabilities: []*csispec.GroupControllerServiceCapability{{
		Type: &csispec.GroupControllerServiceCapability_Rpc{Rpc: &csispec.GroupControllerServiceCapability_RPC{
			Type: csispec.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
		}},
	}}}, nil
}

func (g *groupDriver) CreateVolumeGroupSnapshot(_ context.Context, request *csispec.CreateVolumeGroupSnapshotRequest) (*csispec.CreateVolumeGroupSnapshotResponse, error) {
	id := "id of " + request.GetName()
	if g.groups[id] == nil {
		g.groups[id] = &csispec.VolumeGroupSnapshot{GroupSnapshotId: id, ReadyToUse: true, CreationTime: timestamppb.New(time.Unix(7, 0))}
		for _, volume := range request.GetSourceVolumeIds() {
			g.groups[id].Snapshots = append(g.groups[id].Snapshots, &csispec.Snapshot{
				SnapshotId: "of " + volume, SourceVolumeId: volume, GroupSnapshotId: id, ReadyToUse: true, SizeBytes: 1 << 20, CreationTime: timestamppb.New(time.Unix(7, 0)),
			})
		}
	}
	if g.lies != nil {
		g.lies(g.groups[id])
	}
	return &csispec.CreateVolumeGroupSnapshotResponse{GroupSnapshot: g.groups[id]}, nil
}

func (g *groupDriver) DeleteVolumeGroupSnapshot(_ context.Context, request *csispec.DeleteVolumeGroupSnapshotRequest) (*csispec.DeleteVolumeGroupSnapshotResponse, error) {
	if g.groups[request.GetGroupSnapshotId()] == nil {
		return nil, status.Error(codes.NotFound, "it isn't there")
	}
	delete(g.groups, request.GetGroupSnapshotId())
	return &csispec.DeleteVolumeGroupSnapshotResponse{}, nil
}

func (g *groupDriver) GetVolumeGroupSnapshot(_ context.Context, request *csispec.GetVolumeGroupSnapshotRequest) (*csispec.GetVolumeGroupSnapshotResponse, error) {
	if g.groups[request.GetGroupSnapshotId()] == nil {
		return nil, status.Error(codes.NotFound, "it isn't there")
	}
	return &csispec.GetVolumeGroupSnapshotResponse{GroupSnapshot: g.groups[request.GetGroupSnapshotId()]}, nil
}

// withGroups is a world whose driver makes group snapshots.
func withGroups(t *testing.T) (*world, *groupDriver, backend.GroupSnapshotter) {
	t.Helper()
	w := newWorld(t)
	w.secrets["maker"] = map[string][]byte{"key": []byte("hush")}
	w.object.Spec.CSI.Secrets.Provision = &stowagev1alpha1.SecretReference{Name: "maker"}
	w.groups.able = true
	w.open(t)
	return w, w.groups, w.Backend.(backend.GroupSnapshotter)
}

func groupRequest() backend.GroupSnapshotRequest {
	return backend.GroupSnapshotRequest{ID: "groupsnapshot-1", Owner: "1", Volumes: []string{"a", "b"}, Parameters: map[string]string{"tier": "cold"}}
}

func TestAGroupSnapshotIsMadeFoundAndDeleted(t *testing.T) {
	_, _, groups := withGroups(t)
	made, err := groups.CreateGroupSnapshot(t.Context(), groupRequest())
	if err != nil {
		t.Fatal(err)
	}
	created := time.Unix(7, 0)
	if made.Handle != "id of groupsnapshot-1" || !made.Ready || !made.Created.Equal(created) || len(made.Members) != 2 {
		t.Fatalf("made is %+v", made)
	}
	member := made.Members[1]
	if size := member.RestoreSize.Value(); member.Handle != "of b" || member.Volume != "b" || size != 1<<20 || !member.Created.Equal(created) {
		t.Errorf("its member is %+v", member)
	}
	handles := []string{"of a", "of b"}
	if found, err := groups.FindGroupSnapshot(t.Context(), made.Handle, handles); err != nil || found.Handle != made.Handle {
		t.Fatalf("found is %+v, %v", found, err)
	}
	for range 2 {
		if err := groups.DeleteGroupSnapshot(t.Context(), made.Handle, handles); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := groups.FindGroupSnapshot(t.Context(), made.Handle, handles); !errors.Is(err, backend.NotFound) {
		t.Errorf("after its deletion it is found: %v", err)
	}
}

func TestTheCallsOfAGroupSnapshotHaveTheSecretAndTheParameters(t *testing.T) {
	w, _, groups := withGroups(t)
	if _, err := groups.CreateGroupSnapshot(t.Context(), groupRequest()); err != nil {
		t.Fatal(err)
	}
	if err := groups.DeleteGroupSnapshot(t.Context(), "id of groupsnapshot-1", []string{"of a", "of b"}); err != nil {
		t.Fatal(err)
	}
	created, deleted := did[*csispec.CreateVolumeGroupSnapshotRequest](w.driver)[0], did[*csispec.DeleteVolumeGroupSnapshotRequest](w.driver)[0]
	if created.GetName() != "groupsnapshot-1" || created.GetParameters()["tier"] != "cold" || created.GetSecrets()["key"] != "hush" {
		t.Errorf("it is made by %v", created)
	}
	if deleted.GetSecrets()["key"] != "hush" || !slices.Equal(deleted.GetSnapshotIds(), []string{"of a", "of b"}) {
		t.Errorf("it is deleted by %v", deleted)
	}
}

func TestAnAnswerThatIsNotOfTheGroupIsNotTaken(t *testing.T) {
	for name, test := range map[string]struct {
		lies func(*csispec.VolumeGroupSnapshot)
		kind backend.ErrorKind
	}{
		"without a snapshot of one volume": {func(made *csispec.VolumeGroupSnapshot) { made.Snapshots = made.GetSnapshots()[:1] }, backend.Conflict},
		"with one of another volume":       {func(made *csispec.VolumeGroupSnapshot) { made.Snapshots[0].SourceVolumeId = "other" }, backend.Conflict},
		"with one snapshot twice":          {func(made *csispec.VolumeGroupSnapshot) { made.Snapshots[0].SnapshotId = "of b" }, backend.Conflict},
		"with two of one volume": {func(made *csispec.VolumeGroupSnapshot) {
			made.Snapshots = append(made.Snapshots, &csispec.Snapshot{SnapshotId: "more", SourceVolumeId: "a"})
		}, backend.Conflict},
		"without an id":       {func(made *csispec.VolumeGroupSnapshot) { made.GroupSnapshotId = "" }, backend.InProgress},
		"with too long an id": {func(made *csispec.VolumeGroupSnapshot) { made.GroupSnapshotId = strings.Repeat("x", 5000) }, backend.InProgress},
		"with a member whose id is too long": {func(made *csispec.VolumeGroupSnapshot) {
			made.Snapshots[0].SnapshotId = strings.Repeat("x", 5000)
		}, backend.InProgress},
		"with more snapshots than an object can list": {func(made *csispec.VolumeGroupSnapshot) {
			for range backend.MaxGroup {
				made.Snapshots = append(made.Snapshots, &csispec.Snapshot{SnapshotId: "more", SourceVolumeId: "a"})
			}
		}, backend.InProgress},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver, groups := withGroups(t)
			driver.lies = test.lies
			if made, err := groups.CreateGroupSnapshot(t.Context(), groupRequest()); backend.KindOf(err) != test.kind {
				t.Errorf("it has %+v, %v", made, err)
			}
		})
	}
}

func TestADriverWithoutGroupsSaysSo(t *testing.T) {
	w, driver, groups := withGroups(t)
	w.before = func(request any) error {
		if _, is := request.(*csispec.GroupControllerGetCapabilitiesRequest); is {
			return status.Error(codes.Unimplemented, "unknown service csi.v1.GroupController")
		}
		return nil
	}
	if _, err := groups.CreateGroupSnapshot(t.Context(), groupRequest()); !errors.Is(err, backend.Invalid) {
		t.Errorf("without the service it has %v", err)
	}
	w.before, driver.able = nil, false
	if err := groups.DeleteGroupSnapshot(t.Context(), "g", nil); !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), "doesn't claim") {
		t.Errorf("without the ability it has %v", err)
	}
}

func TestARefusalOfTheVolumesIsFinal(t *testing.T) {
	w, _, groups := withGroups(t)
	w.before = func(request any) error {
		if _, is := request.(*csispec.CreateVolumeGroupSnapshotRequest); is {
			return status.Error(codes.FailedPrecondition, "these volumes are on two systems")
		}
		return nil
	}
	if _, err := groups.CreateGroupSnapshot(t.Context(), groupRequest()); !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), "on two systems") {
		t.Errorf("it has %v", err)
	}
}

func TestADriverThatIsAwaySaysNothingAboutAGroupSnapshot(t *testing.T) {
	w, _, groups := withGroups(t)
	w.server.Stop()
	if _, err := groups.CreateGroupSnapshot(t.Context(), groupRequest()); !errors.Is(err, backend.Unavailable) {
		t.Errorf("making one has %v", err)
	}
	if _, err := groups.FindGroupSnapshot(t.Context(), "g", nil); !errors.Is(err, backend.Unavailable) {
		t.Errorf("finding one has %v", err)
	}
}

func TestAGroupSnapshotThatCannotBeIsRefusedBeforeAnyCall(t *testing.T) {
	w, _, groups := withGroups(t)
	for name, test := range map[string]struct {
		change func(*backend.GroupSnapshotRequest)
		kind   backend.ErrorKind
	}{
		"of no volume":         {func(r *backend.GroupSnapshotRequest) { r.Volumes = nil }, backend.Invalid},
		"of a volume twice":    {func(r *backend.GroupSnapshotRequest) { r.Volumes = []string{"a", "a"} }, backend.Invalid},
		"of an empty handle":   {func(r *backend.GroupSnapshotRequest) { r.Volumes = []string{""} }, backend.Invalid},
		"of another's id":      {func(r *backend.GroupSnapshotRequest) { r.ID = "groupsnapshot-2" }, backend.Conflict},
		"without an owner":     {func(r *backend.GroupSnapshotRequest) { r.ID, r.Owner = "groupsnapshot-", "" }, backend.Conflict},
		"of too many volumes":  {func(r *backend.GroupSnapshotRequest) { r.Volumes = make([]string, backend.MaxGroup+1) }, backend.Invalid},
		"of an owner's no UID": {func(r *backend.GroupSnapshotRequest) { r.ID, r.Owner = "groupsnapshot-a/b", "a/b" }, backend.Conflict},
	} {
		request := groupRequest()
		test.change(&request)
		if _, err := groups.CreateGroupSnapshot(t.Context(), request); backend.KindOf(err) != test.kind {
			t.Errorf("one %s has %v", name, err)
		}
	}
	if calls := did[*csispec.CreateVolumeGroupSnapshotRequest](w.driver); len(calls) != 0 {
		t.Errorf("the driver was called: %v", calls)
	}
}

func TestASnapshotThatIsFoundSaysItsGroup(t *testing.T) {
	w := withVolume(t)
	made, err := w.snapshotter().CreateSnapshot(t.Context(), snapshotRequest())
	if err != nil {
		t.Fatal(err)
	}
	w.snapshots[made.Handle].GroupSnapshotId = "g"
	if found, err := w.snapshotter().FindSnapshot(t.Context(), made.Handle); err != nil || found.Group != "g" {
		t.Errorf("it is found as %+v, %v", found, err)
	}
	if again, err := w.snapshotter().CreateSnapshot(t.Context(), snapshotRequest()); err != nil || again.Group != "" {
		t.Errorf("a repeated CreateSnapshot answers %+v, %v", again, err)
	}
	w.snapshots[made.Handle].GroupSnapshotId = strings.Repeat("x", 5000)
	if _, err := w.snapshotter().FindSnapshot(t.Context(), made.Handle); !errors.Is(err, backend.InProgress) {
		t.Errorf("with too long a group it has %v", err)
	}
}
