package csi

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
	"github.com/stowage-dev/stowage/internal/backend/csi/wire"
	"github.com/stowage-dev/stowage/internal/message"
)

// Validate asks with ValidateVolumeCapabilities for all access modes at once. A driver without that call
// has no objection.
func (b *csiBackend) Validate(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.CSI == nil || len(volume.Spec.AccessModes) == 0 {
		return nil
	}
	controller, can, err := b.driver(ctx)
	if err != nil {
		return backend.Unavailable.Errorf("%w", err)
	}
	secrets, err := b.secret(ctx, b.spec.Secrets.Provision)
	if err != nil {
		return backend.Unavailable.Errorf("%w", err)
	}
	of := volume.Spec.CSI
	asked := &csispec.ValidateVolumeCapabilitiesRequest{VolumeId: of.VolumeHandle, VolumeContext: of.VolumeAttributes, Secrets: secrets}
	for _, mode := range volume.Spec.AccessModes {
		asked.VolumeCapabilities = append(asked.VolumeCapabilities, wire.Capability(
			accessMode(mode, can), ptr.Deref(volume.Spec.VolumeMode, corev1.PersistentVolumeFilesystem), of.FSType, volume.Spec.MountOptions))
	}
	answer, err := calling.Call(ctx, b.spec.driver, controller.ValidateVolumeCapabilities, asked)
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil
	case status.Code(err) == codes.NotFound:
		return b.spec.driver.ErrorOf("ValidateVolumeCapabilities", err, nil)
	case err != nil:
		return b.spec.driver.Unanswered("ValidateVolumeCapabilities", err)
	case answer.GetConfirmed() == nil:
		return backend.Invalid.Errorf("driver %s says that the volume can't be used with these accessModes, volumeMode, fsType and mountOptions: %s",
			b.spec.Driver, message.Cut(answer.GetMessage(), calling.MaxMessage))
	}
	return nil
}
