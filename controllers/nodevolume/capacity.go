package nodevolume

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/room"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// nodeAnnotation names the node of a CSIStorageCapacity of ours. The node's name may be too
// long for a label.
const nodeAnnotation = "stowage.dev/node"

// publish writes the free space of a node for the scheduler, for each class that waits for a
// consumer. It is 0 if the disk is full or not Ready. Objects that are not needed any more are
// deleted.
func (r *DiskReconciler) publish(ctx context.Context, p *pair) error {
	if r.namespace == "" {
		return nil
	}
	published := &storagev1.CSIStorageCapacityList{}
	if err := r.client.List(ctx, published, client.InNamespace(r.namespace), client.MatchingFields{index.CapacitiesByDisk: p.name}); err != nil {
		return fmt.Errorf("listing the capacities of NodeDisk %s: %w", p.name, err)
	}
	wanted, err := r.capacities(ctx, p)
	if err != nil {
		return err
	}
	for i := range published.Items {
		had := &published.Items[i]
		want := wanted[had.Name]
		delete(wanted, had.Name)
		if want != nil && sameTarget(had, want) {
			if err := r.correct(ctx, had, want); err != nil {
				return err
			}
			continue
		}
		// The class, or a label of the node, was changed: the next pass creates it again.
		if err := r.client.Delete(ctx, had, client.Preconditions{UID: &had.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting CSIStorageCapacity %s: %w", had.Name, err)
		}
	}
	for _, want := range wanted {
		if err := r.client.Create(ctx, want); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating CSIStorageCapacity %s: %w", want.Name, err)
		}
	}
	return nil
}

// capacities returns the wanted objects of a disk, by name.
func (r *DiskReconciler) capacities(ctx context.Context, p *pair) (map[string]*storagev1.CSIStorageCapacity, error) {
	wanted := map[string]*storagev1.CSIStorageCapacity{}
	if p.disk == nil || !p.belongs() {
		return wanted, nil
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
			wanted[capacity.Name] = capacity
		}
	}
	return wanted, nil
}

// serves reports whether the scheduler considers the node's free space for claims of a class.
// It does not if volumes are provisioned before it chooses a node.
func (p *pair) serves(class *storagev1.StorageClass) bool {
	return class.Provisioner == stowagev1alpha1.LocalDriver && class.DeletionTimestamp.IsZero() &&
		class.Parameters[stowagev1alpha1.BackendParameter] == p.object.Name &&
		storageclass.WaitsForConsumer(class) && backend.Allows(class.AllowedTopologies, p.node)
}

func (r *DiskReconciler) capacityOf(p *pair, class *storagev1.StorageClass) (*storagev1.CSIStorageCapacity, error) {
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

// sameTarget compares the immutable fields of a capacity, and the owner: a recreated disk is
// another owner.
func sameTarget(had, want *storagev1.CSIStorageCapacity) bool {
	return had.StorageClassName == want.StorageClassName && equality.Semantic.DeepEqual(had.NodeTopology, want.NodeTopology) &&
		equality.Semantic.DeepEqual(had.OwnerReferences, want.OwnerReferences)
}

func (r *DiskReconciler) correct(ctx context.Context, had, want *storagev1.CSIStorageCapacity) error {
	if equality.Semantic.DeepEqual(had.Capacity, want.Capacity) && equality.Semantic.DeepEqual(had.MaximumVolumeSize, want.MaximumVolumeSize) {
		return nil
	}
	before := had.DeepCopy()
	had.Capacity, had.MaximumVolumeSize = want.Capacity, want.MaximumVolumeSize
	err := r.client.Patch(ctx, had, client.MergeFrom(before))
	return wrap.Error(client.IgnoreNotFound(err), "updating CSIStorageCapacity %s", had.Name)
}
