package local

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.CapacityReporter = (*localBackend)(nil)

// Space adds up the disks of all nodes, as their agents last reported them, without disks that are
// missing now.
func (b *localBackend) Space(ctx context.Context) (backend.Space, error) {
	disks, err := b.disks(ctx)
	if err != nil {
		return backend.Space{}, err
	}
	var total, used int64
	for _, disk := range disks {
		if disk.Status.Available != nil {
			total += bytes(disk.Status.Total)
			used += bytes(disk.Status.Used)
		}
	}
	return backend.Space{Total: *resource.NewQuantity(total, resource.BinarySI), Used: *resource.NewQuantity(used, resource.BinarySI)}, nil
}
