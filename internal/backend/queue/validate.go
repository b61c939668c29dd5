package queue

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// validationCalls is in place of a volume's id in calls about what volume objects promise. One of them
// runs at a time, and it gets its slot in turn, as one namespace: a thousand objects delay no claim.
const validationCalls = "validation/"

// Validate asks about a volume object. Its caller has other work for the volume, and doesn't wait: the
// answer wakes it.
func (s *served) Validate(ctx context.Context, volume *corev1.PersistentVolume) error {
	if !s.direct {
		over, cancel := context.WithCancel(ctx)
		cancel()
		ctx = over
	}
	_, err := submit[any](ctx, s, &call{
		subject:   subject{operation: validate, parameters: parameters{class: backend.PromiseOf(volume)}},
		key:       key{id: validationCalls, node: volume.Name},
		namespace: validationCalls,
		run:       func(ctx context.Context) (any, error) { return nil, backend.Validate(ctx, s.Backend, volume) },
	})
	return err
}
