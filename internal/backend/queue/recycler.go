package queue

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
)

// recycler is one whose calls a dispatcher makes.
type recycler struct {
	inner backend.Recycler
	on    served
}

// ServeRecycler returns a recycler that makes its calls through the dispatcher. Wake is
// called as Serve says.
func (d *Dispatcher) ServeRecycler(on Lane, inner backend.Recycler, wake func()) backend.Recycler {
	return &recycler{inner: inner, on: served{dispatcher: d, lane: on, wake: wake}}
}

// Recycle asks for the end of what a directory holds.
func (r *recycler) Recycle(ctx context.Context, wanted backend.Recycling) error {
	_, err := r.on.dispatcher.ask(ctx, &r.on, &call{
		question: question{verb: recycling, version: r.on.lane.Version},
		key:      key{id: wanted.Volume},
		run: func(ctx context.Context) (any, error) {
			return nil, r.inner.Recycle(ctx, wanted)
		},
	})
	return err
}
