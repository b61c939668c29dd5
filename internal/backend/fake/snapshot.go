package fake

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

var (
	_ backend.Snapshotter = (*Backend)(nil)
	_ backend.Snapshotter = (*CSI)(nil)
)

// snapshotPrefix begins the handle of each snapshot: only the answer of a call has it.
const snapshotPrefix = "snapshots/"

// kept is a snapshot, and the capacity that its volume had.
type kept struct {
	backend.SnapshotRequest
	size resource.Quantity
}

// CreateSnapshot keeps the request, or fails as FailNext said.
func (b *Backend) CreateSnapshot(ctx context.Context, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	if err := b.begin(ctx, "CreateSnapshot "+request.ID); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	handle := snapshotPrefix + request.ID
	made, exists := b.snapshots[handle]
	of, there := b.volumes[request.Volume]
	switch {
	case exists && made.Volume != request.Volume:
		return nil, backend.Conflict.Errorf("snapshot %s is of volume %s", request.ID, made.Volume)
	case !exists && !there:
		return nil, backend.NotFound.Errorf("there is no volume %s", request.Volume)
	case !exists:
		b.snapshots[handle] = kept{request, of.Capacity}
	}
	return b.found(handle), nil
}

// DeleteSnapshot drops a snapshot, or fails as FailNext said.
func (b *Backend) DeleteSnapshot(ctx context.Context, handle string) error {
	if err := b.begin(ctx, "DeleteSnapshot "+strings.TrimPrefix(handle, snapshotPrefix)); err != nil {
		return err
	}
	defer b.mu.Unlock()
	delete(b.snapshots, handle)
	return nil
}

// FindSnapshot returns a snapshot, or fails as FailNext said.
func (b *Backend) FindSnapshot(ctx context.Context, handle string) (*backend.Snapshot, error) {
	if err := b.begin(ctx, "FindSnapshot "+strings.TrimPrefix(handle, snapshotPrefix)); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if _, exists := b.snapshots[handle]; !exists {
		return nil, backend.NotFound.Errorf("there is no snapshot %s", handle)
	}
	return b.found(handle), nil
}

func (b *Backend) found(handle string) *backend.Snapshot {
	made := b.snapshots[handle]
	return &backend.Snapshot{Handle: handle, Volume: made.Volume, Created: time.Unix(1, 0), RestoreSize: made.size, Ready: !b.uploading}
}

// SetUploading makes snapshots not ready from now on, or ready.
func (b *Backend) SetUploading(uploading bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uploading = uploading
}

// SetRestores makes the backend able to restore snapshots from now on, or unable.
func (b *Backend) SetRestores(can bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restoresNone = !can
}

// SetInPlace has copies and restores lie where their sources do.
func (b *Backend) SetInPlace() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inPlace = true
}

// Snapshots returns the parameters of the snapshots that the backend holds, by handle.
func (b *Backend) Snapshots() map[string]map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]map[string]string{}
	for handle, made := range b.snapshots {
		all[handle] = made.Parameters
	}
	return all
}

// CreateSnapshot makes a snapshot of the volume with a handle, or fails as HalfNext said.
func (d *CSI) CreateSnapshot(ctx context.Context, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	id, err := idOf(request.Volume)
	if err != nil {
		return nil, err
	}
	request.Volume = id
	made, err := d.of.CreateSnapshot(ctx, request)
	if err != nil {
		return nil, err
	}
	made.Volume = handlePrefix + made.Volume
	return made, d.halfDone()
}

func (d *CSI) halfDone() error {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	return d.nextHalf()
}

// DeleteSnapshot drops a snapshot, or fails as HalfNext said.
func (d *CSI) DeleteSnapshot(ctx context.Context, handle string) error {
	if err := d.of.DeleteSnapshot(ctx, handle); err != nil {
		return err
	}
	return d.halfDone()
}
