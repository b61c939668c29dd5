package fake

import (
	"context"
	"maps"
	"slices"
	"strings"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var (
	_ backend.Lister           = (*Backend)(nil)
	_ backend.Retainer         = (*Backend)(nil)
	_ backend.SnapshotRetainer = (*Backend)(nil)
	_ backend.Remainer         = (*Backend)(nil)
	_ backend.CapacityReporter = (*Backend)(nil)
)

// List returns all volumes, by id, and then all snapshots.
func (b *Backend) List(context.Context) ([]backend.Held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := make([]backend.Held, 0, len(b.volumes))
	for _, id := range slices.Sorted(maps.Keys(b.volumes)) {
		held = append(held, backend.Held{ID: id, Claim: b.volumes[id].Claim, Retained: b.retained[id]})
	}
	held = append(held, b.unrecorded...)
	for _, handle := range slices.Sorted(maps.Keys(b.snapshots)) {
		made := b.snapshots[handle]
		held = append(held, backend.Held{
			ID: handle, Claim: stowagev1alpha1.ClaimReference{Namespace: made.Namespace}, Snapshot: made.Owner, Retained: b.retained[handle],
		})
	}
	return held, nil
}

// LoseRecord leaves a volume on a node without a record, as on a disk after its NodeVolume was
// removed.
func (b *Backend) LoseRecord(id, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unrecorded = append(b.unrecorded, backend.Held{ID: id, Claim: b.volumes[id].Claim, Node: node})
	delete(b.volumes, id)
}

// Remains returns the node on which LoseRecord left a volume.
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

// Retain marks a volume as retained, or fails as FailNext said.
func (b *Backend) Retain(ctx context.Context, id string) (place string, err error) {
	if err := b.begin(ctx, "Retain "+id); err != nil {
		return "", err
	}
	defer b.mu.Unlock()
	if _, exists := b.volumes[id]; !exists {
		return "", backend.NotFound.Errorf("there is no volume %s", id)
	}
	b.retained[id] = true
	return "memory, as " + id, nil
}

// RetainSnapshot marks a snapshot as retained, or fails as FailNext said.
func (b *Backend) RetainSnapshot(ctx context.Context, handle string) error {
	if err := b.begin(ctx, "RetainSnapshot "+strings.TrimPrefix(handle, snapshotPrefix)); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if _, exists := b.snapshots[handle]; !exists {
		return backend.NotFound.Errorf("there is no snapshot %s", handle)
	}
	b.retained[handle] = true
	return nil
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
