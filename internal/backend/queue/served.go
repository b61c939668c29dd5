package queue

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Target is what calls go to: one StorageBackend, or one server.
type Target struct {
	// Name is what messages call it, and what it has its queue by: StorageBackend disks.
	Name string
	// Metric is the name that its calls are measured under. Empty: they are not measured.
	Metric string
	// Version of what calls are decided on, as of a StorageBackend's spec. An answer holds
	// for one version.
	Version string
	// Limit is how many calls run at once; at least one.
	Limit int
}

// served is a backend whose calls the queue makes.
type served struct {
	backend.Backend
	queue  *Queue
	target Target
	wake   func()
	// direct: callers make their calls themselves, and wait for the answer.
	direct bool
}

// Serve returns a backend that makes its calls through the queue. Wake is called when a call
// that got backend.Queued is to be repeated: it has a slot, or there is an answer. Wake must
// not block, and must not call the queue.
func (q *Queue) Serve(target Target, inner backend.Backend, wake func()) backend.Backend {
	return &served{Backend: inner, queue: q, target: target, wake: wake}
}

// Direct returns a backend whose calls are measured, and made by the caller, which waits for
// the answer and takes no slot.
func (q *Queue) Direct(target Target, inner backend.Backend) backend.Backend {
	return &served{Backend: inner, queue: q, target: target, direct: true}
}

// Unwrap returns the backend that is served.
func (s *served) Unwrap() backend.Backend { return s.Backend }

// ask makes a call through the queue, or has its caller make it.
func ask[Answer any](ctx context.Context, s *served, c *call) (answer Answer, err error) {
	c.metric, c.version = s.target.Metric, s.target.Version
	var got any
	if s.direct {
		got, err = s.queue.measure(ctx, c)
	} else {
		got, err = s.queue.ask(ctx, s, c)
	}
	answer, _ = got.(Answer)
	return answer, err
}

// Provision asks for a volume.
func (s *served) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	return ask[*backend.Volume](ctx, s, &call{
		subject:   subject{operation: provision, parameters: parametersOf(request)},
		key:       key{id: request.ID},
		namespace: request.Claim.Namespace,
		run:       func(ctx context.Context) (any, error) { return s.Backend.Provision(ctx, request) },
	})
}

// Delete asks for the end of a volume.
func (s *served) Delete(ctx context.Context, id string) error {
	_, err := ask[any](ctx, s, &call{
		subject: subject{operation: remove},
		key:     key{id: id},
		run:     func(ctx context.Context) (any, error) { return nil, s.Backend.Delete(ctx, id) },
	})
	return err
}

// Expand asks for a volume's growth.
func (s *served) Expand(ctx context.Context, id string, capacity resource.Quantity) (backend.Expansion, error) {
	return ask[backend.Expansion](ctx, s, &call{
		subject: subject{operation: expand, parameters: parameters{capacity: capacity.Value()}},
		key:     key{id: id},
		run:     func(ctx context.Context) (any, error) { return backend.Expand(ctx, s.Backend, id, capacity) },
	})
}

// Retain asks for a volume to be kept.
func (s *served) Retain(ctx context.Context, id string) (string, error) {
	return ask[string](ctx, s, &call{
		subject: subject{operation: retain},
		key:     key{id: id},
		run:     func(ctx context.Context) (any, error) { return backend.Retain(ctx, s.Backend, id) },
	})
}

// parameters are all of a request that its answer depends on.
type parameters struct {
	claim    stowagev1alpha1.ClaimReference
	capacity int64
	mode     corev1.PersistentVolumeMode
	access   string
	node     string
	// topologies are those that the volume's class allows.
	topologies string
	// source is the volume that it is to be a copy of.
	source string
	// metadata is what the claim's owner says of it.
	metadata string
}

func parametersOf(request backend.Request) parameters {
	p := parameters{
		claim:      request.Claim,
		capacity:   request.Capacity.Value(),
		mode:       request.VolumeMode,
		access:     fmt.Sprint(request.AccessModes),
		topologies: fmt.Sprint(request.Topologies),
		metadata:   fmt.Sprint(request.Labels, request.Annotations),
	}
	if request.Node != nil {
		p.node = request.Node.Name
	}
	if request.Source != nil {
		p.source = "copy of " + request.Source.ID
	}
	return p
}
