package nodevolume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/wake"
)

// PairOfDisk returns the backend and the node of a NodeDisk.
func PairOfDisk(_ context.Context, object client.Object) []reconcile.Request {
	disk := object.(*stowagev1alpha1.NodeDisk)
	return []reconcile.Request{requestForPair(disk.Spec.Backend, disk.Spec.NodeName)}
}

func pairOfNodeVolume(_ context.Context, object client.Object) []reconcile.Request {
	volume := object.(*stowagev1alpha1.NodeVolume)
	return []reconcile.Request{requestForPair(volume.Spec.Backend, volume.Spec.NodeName)}
}

// PairOfCapacity returns the pair of a capacity. The capacity itself names the node, because
// the NodeDisk may be gone.
func (r *DiskReconciler) PairOfCapacity(_ context.Context, object client.Object) []reconcile.Request {
	name, node := object.GetLabels()[stowagev1alpha1.BackendLabel], object.GetAnnotations()[nodeAnnotation]
	if name == "" || node == "" || object.GetNamespace() != r.namespace {
		return nil
	}
	return []reconcile.Request{requestForPair(name, node)}
}

func (r *DiskReconciler) pairsOfNode(ctx context.Context, node client.Object) []reconcile.Request {
	objects := &stowagev1alpha1.StorageBackendList{}
	if err := r.client.List(ctx, objects, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing backends")
	}
	var requests []reconcile.Request
	for i := range objects.Items {
		if objects.Items[i].Spec.Local != nil {
			requests = append(requests, requestForPair(objects.Items[i].Name, node.GetName()))
		}
	}
	return requests
}

// PairsOfBackend returns a backend with every node, and with nodes that are gone.
func (r *DiskReconciler) PairsOfBackend(ctx context.Context, object client.Object) []reconcile.Request {
	if object.(*stowagev1alpha1.StorageBackend).Spec.Local == nil {
		return nil
	}
	return r.pairsOf(ctx, object.GetName())
}

// pairsOfClass returns the backend of a class with every node.
func (r *DiskReconciler) pairsOfClass(ctx context.Context, object client.Object) []reconcile.Request {
	class := object.(*storagev1.StorageClass)
	if class.Provisioner != stowagev1alpha1.LocalDriver {
		return nil
	}
	return r.pairsOf(ctx, class.Parameters[stowagev1alpha1.BackendParameter])
}

func (r *DiskReconciler) pairsOf(ctx context.Context, name string) []reconcile.Request {
	nodes, disks := &corev1.NodeList{}, &stowagev1alpha1.NodeDiskList{}
	if err := r.client.List(ctx, nodes, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing nodes")
	}
	if err := r.client.List(ctx, disks, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing disks")
	}
	var requests []reconcile.Request
	for i := range nodes.Items {
		requests = append(requests, requestForPair(name, nodes.Items[i].Name))
	}
	for i := range disks.Items {
		if disk := &disks.Items[i]; disk.Spec.Backend == name {
			requests = append(requests, requestForPair(name, disk.Spec.NodeName))
		}
	}
	return requests
}
