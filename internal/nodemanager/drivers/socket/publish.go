package socket

import (
	"context"
	"fmt"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Stage implements drivers.Driver. A driver without stages has nothing to do.
func (d *Driver) Stage(ctx context.Context, spec volumes.Spec, staging string) error {
	ctx, cancel := context.WithTimeout(ctx, d.CallTimeout)
	defer cancel()
	can, err := d.abilities(ctx)
	if err != nil || !can.stage {
		return err
	}
	driver, err := d.object(ctx)
	if err != nil {
		return err
	}
	secrets, err := d.secret(ctx, spec.PersistentVolume.Spec.CSI.NodeStageSecretRef)
	if err != nil {
		return err
	}
	_, err = d.node.NodeStageVolume(ctx, &csispec.NodeStageVolumeRequest{
		VolumeId: handleOf(spec), PublishContext: publishContext(spec), StagingTargetPath: staging,
		VolumeCapability: d.capability(spec, driver, can), Secrets: secrets, VolumeContext: sourceOf(spec).attributes,
	})
	if err != nil {
		return d.errorOf("NodeStageVolume", err)
	}
	return nil
}

// Unstage implements drivers.Driver. A driver that had stages before it restarted, and has none now,
// has nothing to do: the check of the mount table finds what it left.
func (d *Driver) Unstage(ctx context.Context, handle, staging string) error {
	ctx, cancel := context.WithTimeout(ctx, d.CallTimeout)
	defer cancel()
	can, err := d.abilities(ctx)
	if err != nil {
		return err
	}
	if can.stage {
		_, err = d.node.NodeUnstageVolume(ctx, &csispec.NodeUnstageVolumeRequest{VolumeId: handle, StagingTargetPath: staging})
	}
	return d.undone("NodeUnstageVolume", staging, err)
}

// Publish implements drivers.Driver.
func (d *Driver) Publish(ctx context.Context, spec volumes.Spec, staging, target string) error {
	return d.publish(ctx, spec, handleOf(spec), staging, target)
}

// PublishEphemeral implements drivers.Foreign.
func (d *Driver) PublishEphemeral(ctx context.Context, spec volumes.Spec, handle, target string) error {
	return d.publish(ctx, spec, handle, "", target)
}

func (d *Driver) publish(ctx context.Context, spec volumes.Spec, handle, staging, target string) error {
	ctx, cancel := context.WithTimeout(ctx, d.CallTimeout)
	defer cancel()
	can, err := d.abilities(ctx)
	if err != nil {
		return err
	}
	driver, err := d.object(ctx)
	if err == nil {
		err = d.checkLifecycle(spec, driver)
	}
	if err != nil {
		return err
	}
	if spec.IsBlock() {
		// A kubelet gives no token for a device.
		driver.TokenRequests = nil
	}
	attributes, secrets, err := d.extras(ctx, spec, driver)
	if err != nil {
		return err
	}
	request := &csispec.NodePublishVolumeRequest{
		VolumeId: handle, PublishContext: publishContext(spec), TargetPath: target, Readonly: spec.Access == mount.ReadOnly,
		VolumeCapability: d.capability(spec, driver, can), Secrets: secrets, VolumeContext: attributes,
	}
	if can.stage {
		request.StagingTargetPath = staging
	}
	if _, err := d.node.NodePublishVolume(ctx, request); err != nil {
		return d.errorOf("NodePublishVolume", err)
	}
	return d.checkThere(spec, target)
}

// checkLifecycle refuses a kind of volume that the CSIDriver doesn't name: such a driver may take the
// inline volume of a pod for one with data.
func (d *Driver) checkLifecycle(spec volumes.Spec, driver storagev1.CSIDriverSpec) error {
	wanted, allowed := storagev1.VolumeLifecyclePersistent, driver.VolumeLifecycleModes
	if sourceOf(spec).ephemeral {
		wanted = storagev1.VolumeLifecycleEphemeral
	}
	if len(allowed) == 0 {
		allowed = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
	if !slices.Contains(allowed, wanted) {
		return fmt.Errorf("CSI driver %s has no volumes of mode %s: its CSIDriver object doesn't name that in volumeLifecycleModes", d.name, wanted)
	}
	return nil
}

// Unpublish implements drivers.Driver.
func (d *Driver) Unpublish(ctx context.Context, handle, target string) error {
	ctx, cancel := context.WithTimeout(ctx, d.CallTimeout)
	defer cancel()
	_, err := d.node.NodeUnpublishVolume(ctx, &csispec.NodeUnpublishVolumeRequest{VolumeId: handle, TargetPath: target})
	if err := d.undone("NodeUnpublishVolume", target, err); err != nil {
		return err
	}
	return removeTarget(target)
}

func handleOf(spec volumes.Spec) string { return spec.PersistentVolume.Spec.CSI.VolumeHandle }

// publishContext is what the driver's controller said of the attachment.
func publishContext(spec volumes.Spec) map[string]string {
	if spec.Attachment == nil {
		return nil
	}
	return spec.Attachment.Metadata
}
