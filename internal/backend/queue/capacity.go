package queue

import (
	"context"
	"fmt"

	"github.com/stowage-dev/stowage/internal/backend"
)

// capacityCalls is in place of a volume's id in calls about capacity. One of them runs at a time, so that
// slow ones leave a backend's other slots to volumes. In place of a namespace, it gets slots in turn.
const capacityCalls = "capacity/"

// CapacityTopologies returns the topologies that capacities are for.
func (s *served) CapacityTopologies(ctx context.Context) ([]map[string]string, error) {
	return submit[[]map[string]string](ctx, s, &call{
		subject:   subject{operation: topologies},
		key:       key{id: capacityCalls},
		namespace: capacityCalls,
		run: func(ctx context.Context) (any, error) {
			reporter, can := backend.As[backend.TopologyReporter](s.Backend)
			if !can {
				return nil, s.noCapacity()
			}
			return reporter.CapacityTopologies(ctx)
		},
	})
}

// CapacityOf returns the room for volumes of a class.
func (s *served) CapacityOf(ctx context.Context, request backend.CapacityRequest) (backend.ClassCapacity, error) {
	return submit[backend.ClassCapacity](ctx, s, &call{
		subject:   subject{operation: capacity, parameters: parameters{class: fmt.Sprint(request.Parameters)}},
		key:       key{id: capacityCalls, node: fmt.Sprint(request.Class, request.Topology)},
		namespace: capacityCalls,
		run: func(ctx context.Context) (any, error) {
			reporter, can := backend.As[backend.ClassCapacityReporter](s.Backend)
			if !can {
				return nil, s.noCapacity()
			}
			return reporter.CapacityOf(ctx, request)
		},
	})
}

func (s *served) noCapacity() error {
	return backend.Invalid.Errorf("%s doesn't report the capacity of classes", s.target.Name)
}
