package fake

import (
	"context"
	"maps"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
)

var (
	_ backend.Lister           = (*Backend)(nil)
	_ backend.Retainer         = (*Backend)(nil)
	_ backend.Remainer         = (*Backend)(nil)
	_ backend.CapacityReporter = (*Backend)(nil)
)

// List returns all volumes, by id.
func (b *Backend) List(context.Context) ([]backend.Held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := make([]backend.Held, 0, len(b.volumes))
	for _, id := range slices.Sorted(maps.Keys(b.volumes)) {
		held = append(held, backend.Held{ID: id, Claim: b.volumes[id].Claim, Retained: b.retained[id]})
	}
	return append(held, b.unrecorded...), nil
}

// LoseRecord has a volume stay on a node, without a record of it, as on a node's disk
// whose NodeVolume is gone.
func (b *Backend) LoseRecord(id, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unrecorded = append(b.unrecorded, backend.Held{ID: id, Claim: b.volumes[id].Claim, Node: node})
	delete(b.volumes, id)
}

// Remains tells on which node LoseRecord left a volume.
func (b *Backend) Remains(_ context.Context, id string) (place string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, held := range b.unrecorded {
		if held.ID == id {
			return "the memory of node " + held.Node, nil
		}
	}
	return "", nil
}

// Retain notes the wish, or fails as FailNext said.
func (b *Backend) Retain(ctx context.Context, id string) (place string, err error) {
	if err := b.enter(ctx, "Retain "+id); err != nil {
		return "", err
	}
	defer b.mu.Unlock()
	if err := b.nextFailure(); err != nil {
		return "", err
	}
	if _, exists := b.volumes[id]; !exists {
		return "", backend.NotFound.Errorf("there is no volume %s", id)
	}
	b.retained[id] = true
	return "memory, as " + id, nil
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

// Begin has the backend hold a volume that an earlier call made.
func (b *Backend) Begin(id string, request backend.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	request.ID = id
	b.volumes[id] = request
}

// Source is what a volume was made as a copy of; nil where it began empty.
func (b *Backend) Source(id string) *backend.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.volumes[id].Source
}
