package csi

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
)

// growthCodes are the codes of ControllerExpandVolume that mean something of their own: the volume
// can't grow while it is used, and can't have that size.
var growthCodes = map[codes.Code]backend.ErrorKind{
	codes.FailedPrecondition: backend.Unavailable,
	codes.OutOfRange:         backend.Exhausted,
}

// Expand grows a volume with ControllerExpandVolume. Of a driver whose volumes grow on their node
// alone, the node does all.
func (b *csiBackend) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	controller, can, err := b.driver(ctx)
	if err != nil {
		return backend.Expansion{}, err
	}
	if !can.has(csispec.ControllerServiceCapability_RPC_EXPAND_VOLUME) {
		if can.grows {
			return backend.Expansion{Capacity: request.Capacity, OnNode: true}, nil
		}
		return backend.Expansion{}, backend.Invalid.Errorf("volumes of driver %s can't grow: create a larger claim and copy the data", b.spec.Driver)
	}
	secrets, err := b.secret(ctx, b.spec.Secrets.ControllerExpand)
	if err != nil {
		return backend.Expansion{}, err
	}
	expansion := &csispec.ControllerExpandVolumeRequest{
		VolumeId: request.ID, CapacityRange: &csispec.CapacityRange{RequiredBytes: request.Capacity.Value()}, Secrets: secrets,
	}
	if request.Volume != nil {
		// It is optional: a volume grows, too, of whose access modes CSI has no name for all.
		expansion.VolumeCapability, _ = capabilityOf(request.Volume, can)
	}
	answer, err := calling.Call(ctx, b.spec.driver, controller.ControllerExpandVolume, expansion)
	if err != nil {
		return backend.Expansion{}, b.spec.driver.ErrorOf("ControllerExpandVolume", err, growthCodes)
	}
	has := *resource.NewQuantity(answer.GetCapacityBytes(), resource.BinarySI)
	if has.Cmp(request.Capacity) < 0 {
		return backend.Expansion{}, backend.InProgress.Errorf("driver %s says that the volume has %s, less than the %s that were requested: the call is repeated",
			b.spec.Driver, has.String(), request.Capacity.String())
	}
	return backend.Expansion{Capacity: has, OnNode: answer.GetNodeExpansionRequired()}, nil
}

// modifyCodes are the codes of ControllerModifyVolume that external-resizer takes otherwise than
// those of other calls: after an internal error the call is over, and with too few resources it may
// go on.
var modifyCodes = map[codes.Code]backend.ErrorKind{
	codes.ResourceExhausted:  "",
	codes.FailedPrecondition: backend.NotReady,
	codes.PermissionDenied:   backend.NotReady,
	codes.Unauthenticated:    backend.NotReady,
	codes.Internal:           backend.NotReady,
	codes.Unknown:            backend.NotReady,
	codes.DataLoss:           backend.NotReady,
}

// Modify gives a volume other attributes with ControllerModifyVolume. Before the call, an error that
// isn't about the driver's abilities says nothing about an earlier call.
func (b *csiBackend) Modify(ctx context.Context, id string, attributes backend.Attributes) error {
	controller, can, err := b.driver(ctx)
	if err != nil {
		return backend.Unavailable.Errorf("%w", err)
	}
	if err := b.checkModifies(can); err != nil {
		return err
	}
	secrets, err := b.secret(ctx, b.spec.modifySecret())
	if err != nil {
		return backend.Unavailable.Errorf("%w", err)
	}
	_, err = calling.Call(ctx, b.spec.driver, controller.ControllerModifyVolume, &csispec.ControllerModifyVolumeRequest{
		VolumeId: id, Secrets: secrets, MutableParameters: attributes.Parameters,
	})
	if err != nil {
		return b.spec.driver.ErrorOf("ControllerModifyVolume", err, modifyCodes)
	}
	return nil
}

// checkModifies returns an error where the driver knows no attributes that can change.
func (b *csiBackend) checkModifies(can abilities) error {
	if can.has(csispec.ControllerServiceCapability_RPC_MODIFY_VOLUME) {
		return nil
	}
	return backend.Invalid.Errorf("driver %s knows no VolumeAttributesClass: it doesn't claim MODIFY_VOLUME", b.spec.Driver)
}
