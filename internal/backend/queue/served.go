package queue

import (
	"context"
	"fmt"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Serve returns a backend that makes its calls through the queue. Wake is called when a call that got
// backend.Queued is to be repeated: it has a slot, or there is an answer. Wake must not block, and
// must not call the queue.
func (q *Queue) Serve(target Target, inner backend.Backend, wake func()) backend.Backend {
	return &served{Backend: inner, queue: q, target: target, wake: wake}
}

// Direct returns a backend with measured calls. The caller makes them, waits for the answer, and
// takes no slot.
func (q *Queue) Direct(target Target, inner backend.Backend) backend.Backend {
	return &served{Backend: inner, queue: q, target: target, direct: true}
}

// Unwrap returns the backend that is served.
func (s *served) Unwrap() backend.Backend { return s.Backend }

// submit makes a call through the queue or, if direct, in the caller's goroutine.
func submit[Answer any](ctx context.Context, s *served, c *call) (answer Answer, err error) {
	c.metric, c.version = s.target.Metric, s.target.Version
	var got any
	if s.direct {
		got, err = s.queue.measure(ctx, c)
	} else {
		got, err = s.queue.submit(ctx, s, c)
	}
	answer, _ = got.(Answer)
	return answer, err
}

// Provision makes a volume.
func (s *served) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	return submit[*backend.Volume](ctx, s, &call{
		subject:   subject{operation: provision, parameters: parametersOf(request)},
		key:       key{id: request.ID},
		namespace: request.Claim.Namespace,
		run:       func(ctx context.Context) (any, error) { return s.Backend.Provision(ctx, request) },
	})
}

// Delete removes a volume.
func (s *served) Delete(ctx context.Context, id string) error {
	_, err := submit[any](ctx, s, &call{
		subject: subject{operation: remove},
		key:     key{id: id},
		run:     func(ctx context.Context) (any, error) { return nil, s.Backend.Delete(ctx, id) },
	})
	return err
}

// Undo removes what an unfinished Provision made.
func (s *served) Undo(ctx context.Context, request backend.Request) error {
	_, err := submit[any](ctx, s, &call{
		subject:   subject{operation: undo, parameters: parametersOf(request)},
		key:       key{id: request.ID},
		namespace: request.Claim.Namespace,
		run:       func(ctx context.Context) (any, error) { return nil, backend.Undo(ctx, s.Backend, request) },
	})
	return err
}

// Expand grows a volume.
func (s *served) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	return submit[backend.Expansion](ctx, s, &call{
		subject: subject{operation: expand, parameters: parameters{capacity: request.Capacity.Value()}},
		key:     key{id: request.ID},
		run:     func(ctx context.Context) (any, error) { return backend.Expand(ctx, s.Backend, request) },
	})
}

// Modify gives a volume other attributes. Its key is its own, so that a call to grow the volume, which
// runs before or after it, doesn't replace its answer.
func (s *served) Modify(ctx context.Context, id string, attributes backend.Attributes) error {
	_, err := submit[any](ctx, s, &call{
		subject: subject{operation: modify, parameters: parameters{class: fmt.Sprint(attributes)}},
		key:     key{id: id, node: "/" + string(modify)}, // no node has such a name
		run:     func(ctx context.Context) (any, error) { return nil, backend.Modify(ctx, s.Backend, id, attributes) },
	})
	return err
}

// Retain records that a volume is kept.
func (s *served) Retain(ctx context.Context, id string) (string, error) {
	return submit[string](ctx, s, &call{
		subject: subject{operation: retain},
		key:     key{id: id},
		run:     func(ctx context.Context) (any, error) { return backend.Retain(ctx, s.Backend, id) },
	})
}
