package csi

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
)

// CapacityTopologies returns those of the nodes, of a driver that reports capacity.
func (b *csiBackend) CapacityTopologies(ctx context.Context) ([]map[string]string, error) {
	_, can, err := b.driver(ctx)
	switch {
	case err != nil:
		return nil, err
	case !can.has(csispec.ControllerServiceCapability_RPC_GET_CAPACITY):
		return nil, nil
	case !can.topology:
		return []map[string]string{{}}, nil
	}
	all, _, err := b.segmentsOfNodes(ctx, nil)
	topologies := make([]map[string]string, 0, len(all))
	for _, of := range all {
		topologies = append(topologies, of)
	}
	return topologies, err
}

// CapacityOf asks with GetCapacity. What the class says of access and file system has no part in it, as
// for external-provisioner.
func (b *csiBackend) CapacityOf(ctx context.Context, request backend.CapacityRequest) (backend.ClassCapacity, error) {
	controller, can, err := b.driver(ctx)
	if err != nil {
		return backend.ClassCapacity{}, err
	}
	if !can.has(csispec.ControllerServiceCapability_RPC_GET_CAPACITY) {
		return backend.ClassCapacity{}, backend.Invalid.Errorf("driver %s doesn't claim GET_CAPACITY", b.spec.Driver)
	}
	asked := &csispec.GetCapacityRequest{Parameters: b.spec.parameters(backend.Request{Parameters: request.Parameters})}
	if len(request.Topology) > 0 {
		asked.AccessibleTopology = &csispec.Topology{Segments: request.Topology}
	}
	answer, err := calling.Call(ctx, b.spec.driver, controller.GetCapacity, asked)
	if err != nil {
		return backend.ClassCapacity{}, b.spec.driver.Unanswered("GetCapacity", err)
	}
	return b.spec.checkedCapacity(answer)
}

func (s settings) checkedCapacity(answer *csispec.GetCapacityResponse) (backend.ClassCapacity, error) {
	available, largest := answer.GetAvailableCapacity(), answer.GetMaximumVolumeSize()
	if available < 0 || largest.GetValue() < 0 {
		return backend.ClassCapacity{}, backend.Unavailable.Errorf("driver %s answers GetCapacity with %d bytes, and with volumes of at most %d: its log may say why",
			s.Driver, available, largest.GetValue())
	}
	of := backend.ClassCapacity{Available: *resource.NewQuantity(available, resource.BinarySI)}
	if largest != nil {
		of.MaximumVolumeSize = resource.NewQuantity(largest.GetValue(), resource.BinarySI)
	}
	return of, nil
}
