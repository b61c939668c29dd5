package backend

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TopologyReporter is a backend that is a ClassCapacityReporter, perhaps.
type TopologyReporter interface {
	// CapacityTopologies returns the topologies for which CapacityOf has an answer: labels that nodes
	// have. Without labels it is about all nodes. There is none where the storage doesn't report
	// capacity. Unavailable is as in Provision.
	CapacityTopologies(ctx context.Context) ([]map[string]string, error)
}

// ClassCapacityReporter is a backend that reports how much room there is for volumes of a class, for the
// scheduler. Each TopologyReporter is one.
type ClassCapacityReporter interface {
	// CapacityOf returns the room for volumes of a class, in one topology. It changes nothing. An error
	// says nothing about the room.
	CapacityOf(ctx context.Context, request CapacityRequest) (ClassCapacity, error)
}

// CapacityRequest names what the room is for.
type CapacityRequest struct {
	// Class is the name of the StorageClass, and Parameters are those that its volumes' requests have.
	Class      string
	Parameters map[string]string
	// Topology is one of CapacityTopologies.
	Topology map[string]string
}

// ClassCapacity is the room for volumes of a class, in bytes. Neither is negative.
type ClassCapacity struct {
	Available resource.Quantity
	// MaximumVolumeSize is that of the largest volume; nil where the storage names none.
	MaximumVolumeSize *resource.Quantity
}
