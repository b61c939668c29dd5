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

// CreateGroupSnapshot makes a group snapshot.
func (s *served) CreateGroupSnapshot(ctx context.Context, request backend.GroupSnapshotRequest) (*backend.GroupSnapshot, error) {
	about := subject{operation: createGroupSnapshot, parameters: parameters{source: fmt.Sprintf("%q", request.Volumes), class: fmt.Sprint(request.Parameters)}}
	return onGroup[*backend.GroupSnapshot](ctx, s, about, request.ID, func(ctx context.Context, snapshotter backend.GroupSnapshotter) (any, error) {
		return snapshotter.CreateGroupSnapshot(ctx, request)
	})
}

// DeleteGroupSnapshot removes a group snapshot.
func (s *served) DeleteGroupSnapshot(ctx context.Context, handle string, members []string) error {
	about := subject{operation: deleteGroupSnapshot, parameters: parameters{source: fmt.Sprintf("%q", members)}}
	_, err := onGroup[any](ctx, s, about, handle, func(ctx context.Context, snapshotter backend.GroupSnapshotter) (any, error) {
		return nil, snapshotter.DeleteGroupSnapshot(ctx, handle, members)
	})
	return err
}

// FindGroupSnapshot reads a group snapshot.
func (s *served) FindGroupSnapshot(ctx context.Context, handle string, members []string) (*backend.GroupSnapshot, error) {
	about := subject{operation: findGroupSnapshot, parameters: parameters{source: fmt.Sprintf("%q", members)}}
	return onGroup[*backend.GroupSnapshot](ctx, s, about, handle, func(ctx context.Context, snapshotter backend.GroupSnapshotter) (any, error) {
		return snapshotter.FindGroupSnapshot(ctx, handle, members)
	})
}

// onGroup submits a call about the group snapshot with a name.
func onGroup[T any](ctx context.Context, s *served, about subject, name string, run func(context.Context, backend.GroupSnapshotter) (any, error)) (T, error) {
	return submit[T](ctx, s, &call{subject: about, key: keyOfGroup(name), run: func(ctx context.Context) (any, error) {
		snapshotter, err := backend.GroupSnapshotterOf(s.Backend, s.target.Metric)
		if err != nil {
			return nil, err
		}
		return run(ctx, snapshotter)
	}})
}
