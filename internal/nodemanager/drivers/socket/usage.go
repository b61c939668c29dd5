package socket

import (
	"context"
	"fmt"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Usage implements drivers.Foreign.
func (d *Driver) Usage(ctx context.Context, handle, target string) (volumes.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, d.CallTimeout)
	defer cancel()
	can, err := d.abilities(ctx)
	if err != nil {
		return volumes.Usage{}, err
	}
	if !can.stats {
		return volumes.Usage{}, fmt.Errorf("CSI driver %s doesn't measure volumes: %w", d.name, volumes.ErrNotSupported)
	}
	answer, err := d.node.NodeGetVolumeStats(ctx, &csispec.NodeGetVolumeStatsRequest{VolumeId: handle, VolumePath: target})
	if err != nil {
		return volumes.Usage{}, d.errorOf("NodeGetVolumeStats", err)
	}
	return d.usageOf(answer)
}

// usageOf checks an answer, which may be anything. Of two entries with one unit the last one counts, as
// with a kubelet.
func (d *Driver) usageOf(answer *csispec.NodeGetVolumeStatsResponse) (volumes.Usage, error) {
	var usage volumes.Usage
	for _, entry := range answer.GetUsage() {
		amount := &volumes.Amount{Total: entry.GetTotal(), Available: entry.GetAvailable(), Used: entry.GetUsed()}
		if min(amount.Total, amount.Available, amount.Used) < 0 {
			return volumes.Usage{}, fmt.Errorf("CSI driver %s answers NodeGetVolumeStats with a negative number", d.name)
		}
		switch entry.GetUnit() {
		case csispec.VolumeUsage_BYTES:
			usage.Bytes = amount
		case csispec.VolumeUsage_INODES:
			usage.Inodes = amount
		default:
		}
	}
	if usage == (volumes.Usage{}) {
		return usage, fmt.Errorf("CSI driver %s answers NodeGetVolumeStats without bytes and inodes", d.name)
	}
	return usage, nil
}
