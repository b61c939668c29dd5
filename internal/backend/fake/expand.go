package fake

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.Expander = (*Backend)(nil)

// Expand sets the new capacity, or fails as FailNext said.
func (b *Backend) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	id, capacity := request.ID, request.Capacity
	if err := b.begin(ctx, "Expand "+id+" to "+capacity.String()); err != nil {
		return backend.Expansion{}, err
	}
	defer b.mu.Unlock()
	kept, exists := b.volumes[id]
	if !exists {
		return backend.Expansion{}, backend.NotFound.Errorf("there is no volume %s", id)
	}
	if kept.Capacity.Cmp(capacity) < 0 {
		kept.Capacity = capacity
		b.volumes[id] = kept
	}
	return backend.Expansion{Capacity: kept.Capacity, OnNode: b.onNode, Advisory: b.advisory}, nil
}

// SetOnNode makes expansions need a node, which grows the file system.
func (b *Backend) SetOnNode() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onNode = true
}

// SetAdvisory makes capacities labels instead of limits.
func (b *Backend) SetAdvisory() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advisory = true
}

// Capacity of a volume.
func (b *Backend) Capacity(id string) resource.Quantity {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.volumes[id].Capacity
}
