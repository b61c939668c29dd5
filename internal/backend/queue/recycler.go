package queue

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
)

// recycler is a Recycler with calls that go through the queue.
type recycler struct {
	inner backend.Recycler
	on    served
}

// ServeRecycler returns a recycler that makes its calls through the queue. For wake see Serve.
func (q *Queue) ServeRecycler(target Target, inner backend.Recycler, wake func()) backend.Recycler {
	return &recycler{inner: inner, on: served{queue: q, target: target, wake: wake}}
}

// Recycle empties a directory.
func (r *recycler) Recycle(ctx context.Context, request backend.Recycling) error {
	_, err := submit[any](ctx, &r.on, &call{
		subject: subject{operation: recycle},
		key:     key{id: request.Volume},
		run:     func(ctx context.Context) (any, error) { return nil, r.inner.Recycle(ctx, request) },
	})
	return err
}
