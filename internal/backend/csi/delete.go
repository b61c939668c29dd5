package csi

import (
	"context"
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
	"github.com/stowage-dev/stowage/internal/backend/csi/wire"
)

// missingSource: of CreateVolume, NotFound is about the source of a copy.
var missingSource = map[codes.Code]backend.ErrorKind{codes.NotFound: backend.Invalid}

// stillUsed: of DeleteVolume, FailedPrecondition says that the volume is used.
var stillUsed = map[codes.Code]backend.ErrorKind{codes.FailedPrecondition: backend.InProgress}

// Delete removes the volume to which the driver gave this id.
func (b *csiBackend) Delete(ctx context.Context, id string) error {
	controller, _, err := b.driver(ctx)
	if err != nil {
		return err
	}
	return b.remove(ctx, controller, id)
}

func (b *csiBackend) remove(ctx context.Context, controller csispec.ControllerClient, handle string) error {
	secrets, err := b.secret(ctx, b.spec.Secrets.Provision)
	if err != nil {
		return err
	}
	_, err = calling.Call(ctx, b.spec.driver, controller.DeleteVolume, &csispec.DeleteVolumeRequest{VolumeId: handle, Secrets: secrets})
	if err == nil {
		return nil
	}
	err = b.spec.driver.ErrorOf("DeleteVolume", err, stillUsed)
	if errors.Is(err, backend.NotFound) {
		return nil
	}
	return err
}

// Undo implements backend.Undoer. Only CreateVolume tells the id of a volume that an earlier call
// made. So it makes the volume, or finds it made, and removes it.
//
// A refusal that is final says that there is nothing to remove: of the same request the driver would
// have answered with the volume. AlreadyExists is none: the volume is there, and was made otherwise.
// Nor is one of the Secret, of the driver's state or of its room: none of these says anything about the
// volume.
func (b *csiBackend) Undo(ctx context.Context, request backend.Request) error {
	if !backend.IsVolumeID(request.ID, request.Claim.UID) {
		return backend.Conflict.Errorf("the id %q isn't that of a volume of the claim with uid %s", request.ID, request.Claim.UID)
	}
	if request.Source != nil && request.Source.IsUnknown() {
		return wire.ErrByHand(b.spec.Driver, request.ID)
	}
	controller, can, err := b.driver(ctx)
	if err != nil {
		return err
	}
	// A name may be unique in its zone only: the volume is found where the first call made it.
	err = b.undoAt(ctx, controller, can, request)
	if (request.Node != nil || request.Placement != nil) && (errors.Is(err, backend.WrongNode) || errors.Is(err, backend.Exhausted)) {
		// The node is gone or full: the volume may be found wherever the class allows it.
		request.Node, request.Placement = nil, nil
		err = b.undoAt(ctx, controller, can, request)
	}
	if errors.Is(err, backend.Exhausted) {
		// A driver without room is asked again. The volume may be there all the same.
		return backend.InProgress.Errorf("%w", err)
	}
	return err
}

// undoAt is Undo where the request's node can reach the volume.
func (b *csiBackend) undoAt(ctx context.Context, controller csispec.ControllerClient, can abilities, request backend.Request) error {
	creation, err := b.creation(ctx, request, can)
	if err != nil {
		return err
	}
	answer, err := calling.Call(ctx, b.spec.driver, controller.CreateVolume, creation)
	if err == nil {
		handle := answer.GetVolume().GetVolumeId()
		if handle == "" || len(handle) > maxHandle {
			return backend.InProgress.Errorf("driver %s answers CreateVolume without an id that can be used: the call is repeated", b.spec.Driver)
		}
		return b.remove(ctx, controller, handle)
	}
	switch {
	case wire.SaysThereIsNone(err, request.Source):
		return nil
	case status.Code(err) == codes.NotFound:
		return wire.ErrByHand(b.spec.Driver, request.ID)
	default:
		return b.spec.driver.ErrorOf("CreateVolume", err, nil)
	}
}
