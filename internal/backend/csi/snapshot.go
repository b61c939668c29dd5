package csi

import (
	"context"
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/answer"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
	"github.com/stowage-dev/stowage/internal/backend/csi/groups"
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
	answered, err := calling.Call(ctx, b.spec.driver, controller.CreateSnapshot, &csispec.CreateSnapshotRequest{
		Name: request.ID, SourceVolumeId: request.Volume, Parameters: request.Parameters, Secrets: secrets,
	})
	if err != nil {
		return nil, b.spec.driver.ErrorOf("CreateSnapshot", err, nil)
	}
	made := answered.GetSnapshot()
	if made.GetSourceVolumeId() != request.Volume {
		// It is not deleted: it may be another's.
		return nil, backend.Conflict.Errorf("driver %s answers CreateSnapshot with a snapshot of volume %.200q, and not of %.200q",
			b.spec.Driver, made.GetSourceVolumeId(), request.Volume)
	}
	return answer.Snapshot(b.spec.Driver, "CreateSnapshot", made)
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
			return answer.Listed(b.spec.Driver, entry.GetSnapshot())
		}
	}
	return nil, backend.NotFound.Errorf("driver %s has no snapshot %.200q", b.spec.Driver, handle)
}

// CreateGroupSnapshot makes a group snapshot.
func (b *csiBackend) CreateGroupSnapshot(ctx context.Context, request backend.GroupSnapshotRequest) (*backend.GroupSnapshot, error) {
	return b.groups().Create(ctx, request)
}

// DeleteGroupSnapshot removes a group snapshot.
func (b *csiBackend) DeleteGroupSnapshot(ctx context.Context, handle string, members []string) error {
	return b.groups().Delete(ctx, handle, members)
}

// FindGroupSnapshot asks for a group snapshot.
func (b *csiBackend) FindGroupSnapshot(ctx context.Context, handle string, members []string) (*backend.GroupSnapshot, error) {
	return b.groups().Find(ctx, handle, members)
}

// groups is the driver's GroupController service. The first call of it connects, and reads the Secret of its calls.
func (b *csiBackend) groups() groups.Service {
	return groups.Service{Driver: b.spec.driver, Connect: func(ctx context.Context) (csispec.GroupControllerClient, map[string]string, error) {
		c, err := b.kind.connections.to(ctx, b.kind.cluster, b.spec)
		if err != nil {
			return nil, nil, err
		}
		if _, err := c.abilities(ctx, b.spec); err != nil {
			return nil, nil, err
		}
		secrets, err := b.secret(ctx, b.spec.Secrets.Provision)
		return csispec.NewGroupControllerClient(c.grpc), secrets, err
	}}
}
