package queue

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// served is a backend whose calls a dispatcher makes.
type served struct {
	backend.Backend
	dispatcher *Dispatcher
	lane       Lane
	wake       func()
}

// Lane is where the calls to one StorageBackend, or one server, wait for their turn.
type Lane struct {
	// Backend is who is called, as people are told: StorageBackend disks.
	Backend string
	// Version of what was decided on, as of the StorageBackend's spec: an answer holds
	// for one.
	Version string
	// Limit is how many calls run at once; at least one.
	Limit int
}

// Serve returns a backend that makes its calls through the dispatcher. Wake is called
// when a call that was told backend.Queued is to be repeated: its turn has come, or
// there is an answer. It is not to block, nor to call the dispatcher.
func (d *Dispatcher) Serve(on Lane, inner backend.Backend, wake func()) backend.Backend {
	return &served{Backend: inner, dispatcher: d, lane: on, wake: wake}
}

// Unwrap returns the backend that is served.
func (s *served) Unwrap() backend.Backend { return s.Backend }

// Provision asks for a volume.
func (s *served) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	answer, err := s.dispatcher.ask(ctx, s, &call{
		question:  question{making, s.lane.Version, wantedIn(request)},
		key:       key{id: request.ID},
		namespace: request.Claim.Namespace,
		run: func(ctx context.Context) (any, error) {
			return s.Backend.Provision(ctx, request)
		},
	})
	made, _ := answer.(*backend.Volume)
	return made, err
}

// Delete asks for the end of a volume.
func (s *served) Delete(ctx context.Context, id string) error {
	_, err := s.dispatcher.ask(ctx, s, &call{
		question: question{verb: removal, version: s.lane.Version},
		key:      key{id: id},
		run: func(ctx context.Context) (any, error) {
			return nil, s.Backend.Delete(ctx, id)
		},
	})
	return err
}

// Expand asks for a volume's growth.
func (s *served) Expand(ctx context.Context, id string, capacity resource.Quantity) (backend.Expansion, error) {
	answer, err := s.dispatcher.ask(ctx, s, &call{
		question: question{growth, s.lane.Version, wanted{capacity: capacity.Value()}},
		key:      key{id: id},
		run: func(ctx context.Context) (any, error) {
			return backend.Expand(ctx, s.Backend, id, capacity)
		},
	})
	expanded, _ := answer.(backend.Expansion)
	return expanded, err
}

// Retain asks for a volume to be kept.
func (s *served) Retain(ctx context.Context, id string) (string, error) {
	answer, err := s.dispatcher.ask(ctx, s, &call{
		question: question{verb: retention, version: s.lane.Version},
		key:      key{id: id},
		run: func(ctx context.Context) (any, error) {
			return backend.Retain(ctx, s.Backend, id)
		},
	})
	place, _ := answer.(string)
	return place, err
}

// wanted is all of a request that its answer depends on.
type wanted struct {
	claim    stowagev1alpha1.ClaimReference
	capacity int64
	mode     corev1.PersistentVolumeMode
	access   string
	node     string
	within   string
	// from is the volume that it is to be a copy of.
	from string
	// told is what the claim's owner says of it.
	told string
}

func wantedIn(request backend.Request) wanted {
	w := wanted{
		claim:    request.Claim,
		capacity: request.Capacity.Value(),
		mode:     request.VolumeMode,
		access:   fmt.Sprint(request.AccessModes),
		within:   fmt.Sprint(request.Topologies),
		told:     fmt.Sprint(request.Labels, request.Annotations),
	}
	if request.Node != nil {
		w.node = request.Node.Name
	}
	if request.Source != nil {
		w.from = "copy of " + request.Source.ID
	}
	return w
}
