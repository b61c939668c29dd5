package fake

import (
	"context"
	"maps"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
)

var (
	_ backend.Lister           = (*Backend)(nil)
	_ backend.CapacityReporter = (*Backend)(nil)
)

// List returns all volumes, by id.
func (b *Backend) List(context.Context) ([]backend.Held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := make([]backend.Held, 0, len(b.volumes))
	for _, id := range slices.Sorted(maps.Keys(b.volumes)) {
		held = append(held, backend.Held{ID: id, Claim: b.volumes[id].Claim})
	}
	return held, nil
}

// Lose forgets a volume, as a disk does that breaks.
func (b *Backend) Lose(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.volumes, id)
}

// Space returns what SetSpace set.
func (b *Backend) Space(context.Context) (backend.Space, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.space, nil
}

// SetSpace makes Space return this from now on.
func (b *Backend) SetSpace(space backend.Space) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.space = space
}
