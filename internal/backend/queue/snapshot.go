package queue

import (
	"context"
	"fmt"

	"github.com/stowage-dev/stowage/internal/backend"
)

// CreateSnapshot makes a snapshot.
func (s *served) CreateSnapshot(ctx context.Context, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	about := subject{operation: createSnapshot, parameters: parameters{source: request.Volume, class: fmt.Sprint(request.Parameters, request.Unwanted)}}
	return onSnapshot[*backend.Snapshot](ctx, s, about, request.ID, func(ctx context.Context, snapshotter backend.Snapshotter) (any, error) {
		return snapshotter.CreateSnapshot(ctx, request)
	})
}

// DeleteSnapshot removes a snapshot.
func (s *served) DeleteSnapshot(ctx context.Context, handle string) error {
	_, err := onSnapshot[any](ctx, s, subject{operation: deleteSnapshot}, handle, func(ctx context.Context, snapshotter backend.Snapshotter) (any, error) {
		return nil, snapshotter.DeleteSnapshot(ctx, handle)
	})
	return err
}

// RetainSnapshot records that a snapshot is kept.
func (s *served) RetainSnapshot(ctx context.Context, handle string) error {
	_, err := onSnapshot[any](ctx, s, subject{operation: retainSnapshot}, handle, func(ctx context.Context, _ backend.Snapshotter) (any, error) {
		return nil, backend.RetainSnapshot(ctx, s.Backend, handle)
	})
	return err
}

// FindSnapshot reads a snapshot.
func (s *served) FindSnapshot(ctx context.Context, handle string) (*backend.Snapshot, error) {
	return onSnapshot[*backend.Snapshot](ctx, s, subject{operation: findSnapshot}, handle, func(ctx context.Context, snapshotter backend.Snapshotter) (any, error) {
		return snapshotter.FindSnapshot(ctx, handle)
	})
}

// onSnapshot submits a call about the snapshot with a name.
func onSnapshot[T any](ctx context.Context, s *served, about subject, name string, run func(context.Context, backend.Snapshotter) (any, error)) (T, error) {
	return submit[T](ctx, s, &call{subject: about, key: keyOfSnapshot(name), run: func(ctx context.Context) (any, error) {
		snapshotter, err := backend.SnapshotterOf(s.Backend, s.target.Metric)
		if err != nil {
			return nil, err
		}
		return run(ctx, snapshotter)
	}})
}
