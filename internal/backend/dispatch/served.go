package dispatch

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
	name       string
	limit      int
	wake       func()
}

// Serve returns a backend that makes its calls through the dispatcher, no more than
// limit at once of all that are served under this name. Wake is called when the
// answer is there to a call which was told backend.Queued.
func (d *Dispatcher) Serve(name string, limit int, inner backend.Backend, wake func()) backend.Backend {
	return &served{Backend: inner, dispatcher: d, name: name, limit: max(1, limit), wake: wake}
}

// Unwrap returns the backend that is served.
func (s *served) Unwrap() backend.Backend { return s.Backend }

// Provision asks for a volume.
func (s *served) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	answer, err := s.dispatcher.ask(ctx, s, &call{
		question:  question{"making", wantedIn(request)},
		id:        request.ID,
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
		question: question{verb: "removal"},
		id:       id,
		run: func(ctx context.Context) (any, error) {
			return nil, s.Backend.Delete(ctx, id)
		},
	})
	return err
}

// Expand asks for a volume's growth.
func (s *served) Expand(ctx context.Context, id string, capacity resource.Quantity) (backend.Expansion, error) {
	answer, err := s.dispatcher.ask(ctx, s, &call{
		question: question{"growth", wanted{capacity: capacity.Value()}},
		id:       id,
		run: func(ctx context.Context) (any, error) {
			return backend.Expand(ctx, s.Backend, id, capacity)
		},
	})
	expanded, _ := answer.(backend.Expansion)
	return expanded, err
}

// wanted is all of a request that its answer depends on.
type wanted struct {
	claim    stowagev1alpha1.ClaimReference
	capacity int64
	mode     corev1.PersistentVolumeMode
	access   string
	node     string
	within   string
}

func wantedIn(request backend.Request) wanted {
	w := wanted{
		claim:    request.Claim,
		capacity: request.Capacity.Value(),
		mode:     request.VolumeMode,
		access:   fmt.Sprint(request.AccessModes),
		within:   fmt.Sprint(request.Topologies),
	}
	if request.Node != nil {
		w.node = request.Node.Name
	}
	return w
}
