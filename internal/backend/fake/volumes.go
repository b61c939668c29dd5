package fake

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Provision keeps the request, or fails as FailNext said.
func (b *Backend) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	if err := b.begin(ctx, "Provision "+request.ID); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if volume.IsDiskPath(request.ID) {
		return nil, backend.Conflict.Errorf("%q is no id of a volume", request.ID)
	}
	kept, exists := b.volumes[request.ID]
	if exists && kept.Claim != request.Claim {
		return nil, backend.Conflict.Errorf("volume %s belongs to claim %s/%s", request.ID, kept.Claim.Namespace, kept.Claim.Name)
	}
	if !exists && request.Source != nil {
		if err := b.checkSource(*request.Source); err != nil {
			return nil, err
		}
	}
	if !exists {
		b.volumes[request.ID] = request
		kept = request
	}
	return &backend.Volume{Handle: kept.ID, Capacity: kept.Capacity, FSType: kept.FSType}, nil
}

// checkSource returns why no volume can be made from a source.
func (b *Backend) checkSource(source backend.Source) error {
	of, there := b.volumes[source.ID]
	_, restorable := b.snapshots[source.Snapshot]
	switch {
	case source.Snapshot != "" && !restorable:
		return backend.Invalid.Errorf("there is no snapshot %q to restore", source.Snapshot)
	case source.Snapshot != "":
		return nil
	case !there:
		return backend.Invalid.Errorf("there is no volume %q to copy", source.ID)
	case of.Claim != source.Claim:
		return backend.Conflict.Errorf("volume %q is another claim's", source.ID)
	}
	return nil
}

// Delete drops the volume, once it isn't attached, or fails as FailNext said.
func (b *Backend) Delete(ctx context.Context, id string) error {
	if err := b.begin(ctx, "Delete "+id); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if len(b.attached[id]) > 0 && !b.existing[id] {
		return backend.InProgress.Errorf("volume %s is attached, and is removed once it isn't", id)
	}
	delete(b.volumes, id)
	delete(b.retained, id)
	return nil
}

// Begin adds a volume, as an earlier call did.
func (b *Backend) Begin(id string, request backend.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	request.ID = id
	b.volumes[id] = request
}

// Source is the source of a volume that is a copy; nil for one that began empty.
func (b *Backend) Source(id string) *backend.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.volumes[id].Source
}

// Lose drops a volume, as a broken disk does.
func (b *Backend) Lose(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.volumes, id)
}

// Has reports whether the backend holds a volume.
func (b *Backend) Has(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, exists := b.volumes[id]
	return exists
}

// Len is how many volumes the backend holds.
func (b *Backend) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.volumes)
}
