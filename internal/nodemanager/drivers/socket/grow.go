package socket

import (
	"context"
	"fmt"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Expand implements drivers.Foreign.
func (d *Driver) Expand(ctx context.Context, spec volumes.Spec, staging, target string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, d.CallTimeout)
	defer cancel()
	can, err := d.abilities(ctx)
	if err != nil {
		return 0, err
	}
	if !can.expand {
		return 0, fmt.Errorf("CSI driver %s grows no volumes on nodes: %w", d.name, volumes.ErrNotSupported)
	}
	driver, err := d.object(ctx)
	if err != nil {
		return 0, err
	}
	secrets, err := d.secret(ctx, spec.PersistentVolume.Spec.CSI.NodeExpandSecretRef)
	if err != nil {
		return 0, err
	}
	wanted := spec.PersistentVolume.Spec.Capacity[corev1.ResourceStorage]
	request := &csispec.NodeExpandVolumeRequest{
		VolumeId: handleOf(spec), VolumePath: target, CapacityRange: &csispec.CapacityRange{RequiredBytes: wanted.Value()},
		VolumeCapability: d.capability(spec, driver, can), Secrets: secrets,
	}
	if can.stage {
		request.StagingTargetPath = staging
	}
	answer, err := d.node.NodeExpandVolume(ctx, request)
	switch {
	case isInfeasible(err):
		return 0, fmt.Errorf("%w: %w", volumes.ErrNotSupported, d.errorOf("NodeExpandVolume", err))
	case err != nil:
		return 0, d.errorOf("NodeExpandVolume", err)
	case answer.GetCapacityBytes() == 0:
		// The specification lets a driver leave the size out.
		return wanted.Value(), nil
	default:
		return answer.GetCapacityBytes(), nil
	}
}
