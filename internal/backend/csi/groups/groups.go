// Package groups makes the calls of a driver's GroupController service: snapshots of several volumes, of one time.
package groups

import (
	"context"
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/answer"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
)

// Service is the GroupController service of a driver.
type Service struct {
	Driver calling.Driver
	// Connect returns a client of the driver that has this name, and the secrets of its calls.
	Connect func(ctx context.Context) (csispec.GroupControllerClient, map[string]string, error)
}

// used: of DeleteVolumeGroupSnapshot, FailedPrecondition says that a member is used.
var used = map[codes.Code]backend.ErrorKind{codes.FailedPrecondition: backend.InProgress}

// refused: of CreateVolumeGroupSnapshot, FailedPrecondition says that no group snapshot of these volumes can be.
var refused = map[codes.Code]backend.ErrorKind{codes.FailedPrecondition: backend.Invalid}

// Create makes a group snapshot, or finds it made. Before the call, an error that isn't about the driver's abilities
// says nothing about an earlier call.
func (s Service) Create(ctx context.Context, request backend.GroupSnapshotRequest) (*backend.GroupSnapshot, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	client, secrets, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	const method = "CreateVolumeGroupSnapshot"
	made, err := calling.Call(ctx, s.Driver, client.CreateVolumeGroupSnapshot, &csispec.CreateVolumeGroupSnapshotRequest{
		Name: request.ID, SourceVolumeIds: request.Volumes, Parameters: request.Parameters, Secrets: secrets,
	})
	if err != nil {
		return nil, s.Driver.ErrorOf(method, err, refused)
	}
	group, err := answer.Group(s.Driver.Name, method, made.GetGroupSnapshot())
	if err == nil {
		err = s.checkMembers(request, group)
	}
	if err != nil {
		return nil, err
	}
	return group, nil
}

// Delete removes the group snapshot to which the driver gave this id, with its members. One that isn't there is no error.
func (s Service) Delete(ctx context.Context, handle string, members []string) error {
	client, secrets, err := s.connect(ctx)
	if err != nil {
		return err
	}
	_, err = calling.Call(ctx, s.Driver, client.DeleteVolumeGroupSnapshot, &csispec.DeleteVolumeGroupSnapshotRequest{
		GroupSnapshotId: handle, SnapshotIds: members, Secrets: secrets,
	})
	if err != nil {
		err = s.Driver.ErrorOf("DeleteVolumeGroupSnapshot", err, used)
	}
	if errors.Is(err, backend.NotFound) {
		return nil
	}
	return err
}

// Find asks for the one group snapshot.
func (s Service) Find(ctx context.Context, handle string, members []string) (*backend.GroupSnapshot, error) {
	client, secrets, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	const method = "GetVolumeGroupSnapshot"
	found, err := calling.Call(ctx, s.Driver, client.GetVolumeGroupSnapshot, &csispec.GetVolumeGroupSnapshotRequest{
		GroupSnapshotId: handle, SnapshotIds: members, Secrets: secrets,
	})
	if status.Code(err) == codes.NotFound {
		return nil, backend.NotFound.Errorf("driver %s has no group snapshot %.200q", s.Driver.Name, handle)
	}
	if err != nil {
		return nil, s.Driver.Unanswered(method, err)
	}
	group, err := answer.Group(s.Driver.Name, method, found.GetGroupSnapshot())
	if err == nil && group.Handle != handle {
		return nil, backend.Conflict.Errorf("driver %s answers %s with group snapshot %.200q, and not with %.200q", s.Driver.Name, method, group.Handle, handle)
	}
	return group, err
}

// connect returns a client, and the secrets of its calls. An error is about the driver's abilities, or of kind
// Unavailable.
func (s Service) connect(ctx context.Context) (csispec.GroupControllerClient, map[string]string, error) {
	client, secrets, err := s.Connect(ctx)
	if err != nil {
		return nil, nil, backend.Unavailable.Errorf("%w", err)
	}
	return client, secrets, s.check(ctx, client)
}

// check returns an error where the driver makes no group snapshots.
func (s Service) check(ctx context.Context, client csispec.GroupControllerClient) error {
	claimed, err := calling.Call(ctx, s.Driver, client.GroupControllerGetCapabilities, &csispec.GroupControllerGetCapabilitiesRequest{})
	if err != nil {
		return s.Driver.Unanswered("GroupControllerGetCapabilities", err)
	}
	for _, capability := range claimed.GetCapabilities() {
		if capability.GetRpc().GetType() == csispec.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT {
			return nil
		}
	}
	return backend.Invalid.Errorf("driver %s can't make snapshots of groups: it doesn't claim CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT", s.Driver.Name)
}

// checkMembers returns an error unless a new group snapshot has one snapshot of each volume, and no others. It is not
// deleted: it may be another's.
func (s Service) checkMembers(request backend.GroupSnapshotRequest, made *backend.GroupSnapshot) error {
	missing, handles := map[string]bool{}, map[string]bool{}
	for _, volume := range request.Volumes {
		missing[volume] = true
	}
	for _, member := range made.Members {
		if !missing[member.Volume] || handles[member.Handle] {
			return backend.Conflict.Errorf("driver %s answers CreateVolumeGroupSnapshot with group snapshot %.200q, and snapshot %.200q of volume %.200q: it wasn't asked for, or is there twice",
				s.Driver.Name, made.Handle, member.Handle, member.Volume)
		}
		delete(missing, member.Volume)
		handles[member.Handle] = true
	}
	for volume := range missing {
		return backend.Conflict.Errorf("driver %s answers CreateVolumeGroupSnapshot with group snapshot %.200q, without snapshots of %d volumes, such as %.200q",
			s.Driver.Name, made.Handle, len(missing), volume)
	}
	return nil
}
