package queue

import (
	"context"
	"fmt"

	"github.com/stowage-dev/stowage/internal/backend"
)

// keyOfSnapshot is the key of calls about a snapshot, by its id or its handle. A driver may give a
// snapshot and a volume the same handle: a call about the one must not replace the answer of the other.
func keyOfSnapshot(name string) key { return key{id: "snapshot " + name} }

// CreateSnapshot makes a snapshot.
func (s *served) CreateSnapshot(ctx context.Context, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	return submit[*backend.Snapshot](ctx, s, &call{
		subject: subject{operation: createSnapshot, parameters: parameters{source: request.Volume, class: fmt.Sprint(request.Parameters)}},
		key:     keyOfSnapshot(request.ID),
		run: func(ctx context.Context) (any, error) {
			snapshotter, err := s.snapshotter()
			if err != nil {
				return nil, err
			}
			return snapshotter.CreateSnapshot(ctx, request)
		},
	})
}

// DeleteSnapshot removes a snapshot.
func (s *served) DeleteSnapshot(ctx context.Context, handle string) error {
	_, err := submit[any](ctx, s, &call{
		subject: subject{operation: deleteSnapshot},
		key:     keyOfSnapshot(handle),
		run: func(ctx context.Context) (any, error) {
			snapshotter, err := s.snapshotter()
			if err != nil {
				return nil, err
			}
			return nil, snapshotter.DeleteSnapshot(ctx, handle)
		},
	})
	return err
}

// FindSnapshot reads a snapshot.
func (s *served) FindSnapshot(ctx context.Context, handle string) (*backend.Snapshot, error) {
	return submit[*backend.Snapshot](ctx, s, &call{
		subject: subject{operation: findSnapshot},
		key:     keyOfSnapshot(handle),
		run: func(ctx context.Context) (any, error) {
			snapshotter, err := s.snapshotter()
			if err != nil {
				return nil, err
			}
			return snapshotter.FindSnapshot(ctx, handle)
		},
	})
}

func (s *served) snapshotter() (backend.Snapshotter, error) {
	return backend.SnapshotterOf(s.Backend, s.target.Metric)
}
