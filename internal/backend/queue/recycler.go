package queue

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
)

// recycler is one whose calls the queue makes.
type recycler struct {
	inner backend.Recycler
	on    served
}

// ServeRecycler returns a recycler that makes its calls through the queue. Wake is called as
// Serve says.
func (q *Queue) ServeRecycler(target Target, inner backend.Recycler, wake func()) backend.Recycler {
	return &recycler{inner: inner, on: served{queue: q, target: target, wake: wake}}
}

// Recycle asks for the end of what a directory holds.
func (r *recycler) Recycle(ctx context.Context, wanted backend.Recycling) error {
	_, err := submit[any](ctx, &r.on, &call{
		subject: subject{operation: recycle},
		key:     key{id: wanted.Volume},
		run:     func(ctx context.Context) (any, error) { return nil, r.inner.Recycle(ctx, wanted) },
	})
	return err
}
