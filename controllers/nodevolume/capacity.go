package nodevolume

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/room"
	"github.com/stowage-dev/stowage/internal/storagecapacity"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// capacities publishes the free space of nodes.
type capacities struct {
	client client.Client
	// namespace is where capacities are published; empty: nowhere.
	namespace string
}

// publish writes the free space of a node for the scheduler, for each class that waits for a
// consumer. It is 0 if the disk is full or not Ready. Objects that are not needed any more are
// deleted.
func (r capacities) publish(ctx context.Context, p *pair) error {
	if r.namespace == "" {
		return nil
	}
	published := &storagev1.CSIStorageCapacityList{}
	if err := r.client.List(ctx, published, client.InNamespace(r.namespace), client.MatchingFields{index.CapacitiesByDisk: p.name}); err != nil {
		return fmt.Errorf("listing the capacities of NodeDisk %s: %w", p.name, err)
	}
	desired, err := r.of(ctx, p)
	if err != nil {
		return err
	}
	return storagecapacity.Publish(ctx, r.client, published.Items, desired)
}

// of returns the desired objects of a disk, by name.
func (r capacities) of(ctx context.Context, p *pair) (map[string]*storagev1.CSIStorageCapacity, error) {
	desired := map[string]*storagev1.CSIStorageCapacity{}
	if p.disk == nil || !p.belongs() {
		return desired, nil
	}
	classes := &storagev1.StorageClassList{}
	if err := r.client.List(ctx, classes); err != nil {
		return nil, fmt.Errorf("listing StorageClasses: %w", err)
	}
	for i := range classes.Items {
		if class := &classes.Items[i]; p.serves(class) {
			capacity, err := r.capacityOf(p, class)
			if err != nil {
				return nil, err
			}
			desired[capacity.Name] = capacity
		}
	}
	return desired, nil
}

func (r capacities) capacityOf(p *pair, class *storagev1.StorageClass) (*storagev1.CSIStorageCapacity, error) {
	free := room.Of(p.disk)
	capacity := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespace, Name: p.name + "." + hashOf(class.Name),
			Labels:      map[string]string{stowagev1alpha1.BackendLabel: p.object.Name},
			Annotations: map[string]string{nodeAnnotation: p.node.Name},
		},
		StorageClassName: class.Name,
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{
			stowagev1alpha1.TopologyNodeLabel: p.node.Labels[stowagev1alpha1.TopologyNodeLabel],
		}},
		Capacity: &free, MaximumVolumeSize: &free,
	}
	err := controllerutil.SetControllerReference(p.disk, capacity, r.client.Scheme())
	return capacity, wrap.Error(err, "owning CSIStorageCapacity %s", capacity.Name)
}
