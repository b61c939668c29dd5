package csi

import (
	"context"
	"errors"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
)

// usedSnapshot: of DeleteSnapshot, FailedPrecondition says that the snapshot is used.
var usedSnapshot = map[codes.Code]backend.ErrorKind{codes.FailedPrecondition: backend.InProgress}

// CreateSnapshot makes a snapshot. Before the call, an error that isn't about the driver's abilities
// says nothing about an earlier call.
func (b *csiBackend) CreateSnapshot(ctx context.Context, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	controller, can, err := b.driver(ctx)
	if err != nil {
		return nil, backend.Unavailable.Errorf("%w", err)
	}
	if !can.has(csispec.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT) {
		return nil, backend.Invalid.Errorf("driver %s can't make snapshots: it doesn't claim CREATE_DELETE_SNAPSHOT", b.spec.Driver)
	}
	secrets, err := b.secret(ctx, b.spec.Secrets.Provision)
	if err != nil {
		return nil, backend.Unavailable.Errorf("%w", err)
	}
	answer, err := calling.Call(ctx, b.spec.driver, controller.CreateSnapshot, &csispec.CreateSnapshotRequest{
		Name: request.ID, SourceVolumeId: request.Volume, Parameters: request.Parameters, Secrets: secrets,
	})
	if err != nil {
		return nil, b.spec.driver.ErrorOf("CreateSnapshot", err, nil)
	}
	made := answer.GetSnapshot()
	if made.GetSourceVolumeId() != request.Volume {
		// It is not deleted: it may be another's.
		return nil, backend.Conflict.Errorf("driver %s answers CreateSnapshot with a snapshot of volume %.200q, and not of %.200q",
			b.spec.Driver, made.GetSourceVolumeId(), request.Volume)
	}
	return b.snapshot("CreateSnapshot", made)
}

// DeleteSnapshot removes the snapshot to which the driver gave this id.
func (b *csiBackend) DeleteSnapshot(ctx context.Context, handle string) error {
	controller, _, err := b.driver(ctx)
	if err != nil {
		return err
	}
	secrets, err := b.secret(ctx, b.spec.Secrets.Provision)
	if err != nil {
		return err
	}
	_, err = calling.Call(ctx, b.spec.driver, controller.DeleteSnapshot, &csispec.DeleteSnapshotRequest{SnapshotId: handle, Secrets: secrets})
	if err != nil {
		err = b.spec.driver.ErrorOf("DeleteSnapshot", err, usedSnapshot)
	}
	if errors.Is(err, backend.NotFound) {
		return nil
	}
	return err
}

// FindSnapshot lists the one snapshot. Of a driver that lists none, each counts as ready, as
// csi-snapshotter has it.
func (b *csiBackend) FindSnapshot(ctx context.Context, handle string) (*backend.Snapshot, error) {
	controller, can, err := b.driver(ctx)
	switch {
	case err != nil:
		return nil, err
	case !can.has(csispec.ControllerServiceCapability_RPC_LIST_SNAPSHOTS):
		return &backend.Snapshot{Handle: handle, Ready: true}, nil
	}
	secrets, err := b.secret(ctx, b.spec.Secrets.Provision)
	if err != nil {
		return nil, err
	}
	page, err := calling.Call(ctx, b.spec.driver, controller.ListSnapshots, &csispec.ListSnapshotsRequest{SnapshotId: handle, Secrets: secrets})
	if err != nil {
		return nil, b.spec.driver.Unanswered("ListSnapshots", err)
	}
	for _, entry := range page.GetEntries() {
		if entry.GetSnapshot().GetSnapshotId() == handle {
			return b.foundSnapshot(entry.GetSnapshot())
		}
	}
	return nil, backend.NotFound.Errorf("driver %s has no snapshot %.200q", b.spec.Driver, handle)
}

// foundSnapshot checks what ListSnapshots says of a snapshot. It alone says which group a snapshot is of.
func (b *csiBackend) foundSnapshot(listed *csispec.Snapshot) (*backend.Snapshot, error) {
	found, err := b.snapshot("ListSnapshots", listed)
	if err != nil {
		return nil, err
	}
	found.Group = listed.GetGroupSnapshotId()
	if len(found.Group) > maxHandle {
		return nil, backend.InProgress.Errorf("driver %s answers ListSnapshots with a group_snapshot_id of %d bytes, and not of %d at most: the call is repeated",
			b.spec.Driver, len(found.Group), maxHandle)
	}
	return found, nil
}

// snapshot checks an answer. Without an id that can be used a repeat may have a better one.
func (b *csiBackend) snapshot(method string, made *csispec.Snapshot) (*backend.Snapshot, error) {
	handle := made.GetSnapshotId()
	if handle == "" || len(handle) > maxHandle {
		return nil, backend.InProgress.Errorf("driver %s answers %s with a snapshot_id of %d bytes, and not of 1 to %d: the call is repeated", b.spec.Driver, method, len(handle), maxHandle)
	}
	created := time.Time{}
	if made.GetCreationTime().IsValid() {
		created = made.GetCreationTime().AsTime()
	}
	return &backend.Snapshot{
		Handle: handle, Created: created, Ready: made.GetReadyToUse(),
		RestoreSize: *resource.NewQuantity(max(0, made.GetSizeBytes()), resource.BinarySI),
	}, nil
}

// CreateGroupSnapshot makes a group snapshot.
func (b *csiBackend) CreateGroupSnapshot(ctx context.Context, request backend.GroupSnapshotRequest) (*backend.GroupSnapshot, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	groups, secrets, err := b.groupsWithSecret(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := calling.Call(ctx, b.spec.driver, groups.CreateVolumeGroupSnapshot, &csispec.CreateVolumeGroupSnapshotRequest{
		Name: request.ID, SourceVolumeIds: request.Volumes, Parameters: request.Parameters, Secrets: secrets,
	})
	if err != nil {
		return nil, b.spec.driver.ErrorOf("CreateVolumeGroupSnapshot", err, nil)
	}
	made, err := b.groupSnapshot("CreateVolumeGroupSnapshot", answer.GetGroupSnapshot())
	if err != nil {
		return nil, err
	}
	return made, b.checkMembers(request, made)
}

// DeleteGroupSnapshot removes the group snapshot to which the driver gave this id.
func (b *csiBackend) DeleteGroupSnapshot(ctx context.Context, handle string, members []string) error {
	groups, secrets, err := b.groupsWithSecret(ctx)
	if err != nil {
		return err
	}
	_, err = calling.Call(ctx, b.spec.driver, groups.DeleteVolumeGroupSnapshot, &csispec.DeleteVolumeGroupSnapshotRequest{
		GroupSnapshotId: handle, SnapshotIds: members, Secrets: secrets,
	})
	if err != nil {
		err = b.spec.driver.ErrorOf("DeleteVolumeGroupSnapshot", err, usedSnapshot)
	}
	if errors.Is(err, backend.NotFound) {
		return nil
	}
	return err
}

// FindGroupSnapshot asks for the one group snapshot.
func (b *csiBackend) FindGroupSnapshot(ctx context.Context, handle string, members []string) (*backend.GroupSnapshot, error) {
	groups, secrets, err := b.groupsWithSecret(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := calling.Call(ctx, b.spec.driver, groups.GetVolumeGroupSnapshot, &csispec.GetVolumeGroupSnapshotRequest{
		GroupSnapshotId: handle, SnapshotIds: members, Secrets: secrets,
	})
	if status.Code(err) == codes.NotFound {
		return nil, backend.NotFound.Errorf("driver %s has no group snapshot %.200q", b.spec.Driver, handle)
	}
	if err != nil {
		return nil, b.spec.driver.Unanswered("GetVolumeGroupSnapshot", err)
	}
	found, err := b.groupSnapshot("GetVolumeGroupSnapshot", answer.GetGroupSnapshot())
	if err == nil && found.Handle != handle {
		return nil, backend.Conflict.Errorf("driver %s answers GetVolumeGroupSnapshot with group snapshot %.200q, and not with %.200q", b.spec.Driver, found.Handle, handle)
	}
	return found, err
}

func (b *csiBackend) groupsWithSecret(ctx context.Context) (csispec.GroupControllerClient, map[string]string, error) {
	groups, err := b.groups(ctx)
	if err != nil {
		return nil, nil, err
	}
	secrets, err := b.secret(ctx, b.spec.Secrets.Provision)
	if err != nil {
		return nil, nil, backend.Unavailable.Errorf("%w", err)
	}
	return groups, secrets, nil
}

// groupSnapshot checks an answer, as snapshot does. Each handle of it is recorded.
func (b *csiBackend) groupSnapshot(method string, made *csispec.VolumeGroupSnapshot) (*backend.GroupSnapshot, error) {
	handle := made.GetGroupSnapshotId()
	if handle == "" || len(handle) > maxHandle {
		return nil, backend.InProgress.Errorf("driver %s answers %s with a group_snapshot_id of %d bytes, and not of 1 to %d: the call is repeated", b.spec.Driver, method, len(handle), maxHandle)
	}
	if len(made.GetSnapshots()) > backend.MaxGroup {
		return nil, backend.InProgress.Errorf("driver %s answers %s with %d snapshots, and not with %d at most: the call is repeated", b.spec.Driver, method, len(made.GetSnapshots()), backend.MaxGroup)
	}
	group := &backend.GroupSnapshot{Handle: handle, Ready: made.GetReadyToUse()}
	if made.GetCreationTime().IsValid() {
		group.Created = made.GetCreationTime().AsTime()
	}
	for _, of := range made.GetSnapshots() {
		one, err := b.snapshot(method, of)
		if err != nil {
			return nil, err
		}
		group.Members = append(group.Members, backend.MemberSnapshot{Snapshot: *one, Volume: of.GetSourceVolumeId()})
	}
	return group, nil
}

// checkMembers returns an error unless a new group snapshot has one snapshot of each volume, and no others. It is not
// deleted: it may be another's.
func (b *csiBackend) checkMembers(request backend.GroupSnapshotRequest, made *backend.GroupSnapshot) error {
	missing, handles := map[string]bool{}, map[string]bool{}
	for _, volume := range request.Volumes {
		missing[volume] = true
	}
	for _, member := range made.Members {
		if !missing[member.Volume] || handles[member.Handle] {
			return backend.Conflict.Errorf("driver %s answers CreateVolumeGroupSnapshot with snapshot %.200q of volume %.200q: it wasn't asked for, or is there twice",
				b.spec.Driver, member.Handle, member.Volume)
		}
		delete(missing, member.Volume)
		handles[member.Handle] = true
	}
	for volume := range missing {
		return backend.Conflict.Errorf("driver %s answers CreateVolumeGroupSnapshot without snapshots of %d volumes, such as %.200q", b.spec.Driver, len(missing), volume)
	}
	return nil
}
