package csi

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
	"github.com/stowage-dev/stowage/internal/backend/csi/wire"
)

// maxPublishContext bounds the publish_context, in bytes of keys and values. It goes into the status of
// the VolumeAttachment.
const maxPublishContext = 16 << 10

// publishCodes: a volume that is published elsewhere, or in another way, is a conflict.
var publishCodes = map[codes.Code]backend.ErrorKind{codes.FailedPrecondition: backend.Conflict}

// Attach attaches a volume with ControllerPublishVolume. Of a driver without it, nothing is to be
// attached.
func (b *csiBackend) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	controller, can, err := b.driver(ctx)
	if err != nil {
		return backend.Attachment{}, err
	}
	if !can.has(csispec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME) {
		return backend.Attachment{}, nil
	}
	if request.Node.DriverID == "" {
		return backend.Attachment{}, backend.WrongNode.Errorf("driver %s is not registered on node %s: look whether its DaemonSet runs there", b.spec.Driver, request.Node.Name)
	}
	published, err := b.publication(ctx, request, can)
	if err != nil {
		return backend.Attachment{}, err
	}
	answer, err := calling.Call(ctx, b.spec.driver, controller.ControllerPublishVolume, published)
	if err != nil {
		return backend.Attachment{}, b.spec.driver.ErrorOf("ControllerPublishVolume", err, publishCodes)
	}
	if got := wire.Size(answer.GetPublishContext()); got > maxPublishContext {
		return backend.Attachment{}, backend.InProgress.Errorf("driver %s answers ControllerPublishVolume with %d bytes, more than %d: the call is repeated",
			b.spec.Driver, got, maxPublishContext)
	}
	return backend.Attachment{Metadata: answer.GetPublishContext()}, nil
}

// publication is the request of ControllerPublishVolume.
func (b *csiBackend) publication(ctx context.Context, request backend.AttachRequest, can abilities) (*csispec.ControllerPublishVolumeRequest, error) {
	if request.Volume == nil || request.Volume.Spec.CSI == nil {
		return nil, backend.Invalid.Errorf("volume %s has no PersistentVolume of driver %s any more", request.ID, b.spec.Driver)
	}
	of := request.Volume.Spec.CSI
	secrets, err := b.secret(ctx, b.spec.Secrets.ControllerPublish)
	if err != nil {
		return nil, err
	}
	capability, err := capabilityOf(request.Volume, can)
	if err != nil {
		return nil, err
	}
	return &csispec.ControllerPublishVolumeRequest{
		VolumeId: request.ID, NodeId: request.Node.DriverID, Readonly: request.ReadOnly,
		VolumeCapability: capability, VolumeContext: of.VolumeAttributes, Secrets: secrets,
	}, nil
}

// capabilityOf is how a volume is used.
func capabilityOf(pv *corev1.PersistentVolume, can abilities) (*csispec.VolumeCapability, error) {
	mode, err := wire.PublishMode(pv, can.distinguishes())
	if err != nil {
		return nil, err
	}
	return wire.Capability(mode, ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem), pv.Spec.CSI.FSType, pv.Spec.MountOptions), nil
}

// Detach detaches a volume with ControllerUnpublishVolume. An attachment has the driver's id of its
// node before the volume is attached: without one, nothing was. To CSI, no id means all nodes, so
// no call is made then.
func (b *csiBackend) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	controller, can, err := b.driver(ctx)
	if err != nil || !can.has(csispec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME) {
		return err
	}
	if node.DriverID == "" {
		return b.checkUnpublished(ctx, controller, can, id, node)
	}
	secrets, err := b.secret(ctx, b.spec.Secrets.ControllerPublish)
	if err != nil {
		return err
	}
	_, err = calling.Call(ctx, b.spec.driver, controller.ControllerUnpublishVolume, &csispec.ControllerUnpublishVolumeRequest{
		VolumeId: id, NodeId: node.DriverID, Secrets: secrets,
	})
	if err != nil {
		return b.spec.driver.ErrorOf("ControllerUnpublishVolume", err, nil)
	}
	return nil
}
