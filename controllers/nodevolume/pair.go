package nodevolume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wake"
)

// nodeAnnotation names the node of a CSIStorageCapacity of ours. The node's name may be too
// long for a label.
const nodeAnnotation = "stowage.dev/node"

// nameHash is the number of hexadecimal digits that stand for a name that may be too long.
const nameHash = 16

// pair is a backend on a node; an object that does not exist is nil.
type pair struct {
	name   string
	object *stowagev1alpha1.StorageBackend
	node   *corev1.Node
	disk   *stowagev1alpha1.NodeDisk
	// inUse is true if the node has volumes of the backend, even volumes that are being
	// removed.
	inUse bool
}

// belongs reports whether new volumes of the backend may be on the node.
func (p *pair) belongs() bool {
	return p.object != nil && p.object.Spec.Local != nil && p.object.DeletionTimestamp.IsZero() &&
		p.node != nil && p.node.DeletionTimestamp.IsZero() && backend.LiesOn(p.object.Spec.Local, p.node) &&
		(p.disk == nil || p.disk.Spec.Path == p.object.Spec.Local.Path)
}

// serves reports whether the scheduler considers the node's free space for claims of a class.
// It does not if volumes are provisioned before it chooses a node.
func (p *pair) serves(class *storagev1.StorageClass) bool {
	return class.Provisioner == stowagev1alpha1.LocalDriver && class.DeletionTimestamp.IsZero() &&
		class.Parameters[stowagev1alpha1.BackendParameter] == p.object.Name &&
		storageclass.WaitsForConsumer(class) && backend.Allows(class.AllowedTopologies, p.node)
}

func requestForPair(name, node string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name, Namespace: node}}
}

// NodeDiskName returns the name of the disk of a backend on a node. It is deterministic and
// unique to the pair: the part after the last dot is the node's.
func NodeDiskName(name, node string) string { return name + "." + hashOf(node) }

func hashOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:nameHash]
}

// pairs finds the pairs of a backend and a node that a change wakes.
type pairs struct {
	client client.Reader
	// namespace is where capacities are published; empty: nowhere.
	namespace string
}

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
func (r pairs) PairOfCapacity(_ context.Context, object client.Object) []reconcile.Request {
	name, node := object.GetLabels()[stowagev1alpha1.BackendLabel], object.GetAnnotations()[nodeAnnotation]
	if name == "" || node == "" || object.GetNamespace() != r.namespace {
		return nil
	}
	return []reconcile.Request{requestForPair(name, node)}
}

func (r pairs) pairsOfNode(ctx context.Context, node client.Object) []reconcile.Request {
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
func (r pairs) PairsOfBackend(ctx context.Context, object client.Object) []reconcile.Request {
	if object.(*stowagev1alpha1.StorageBackend).Spec.Local == nil {
		return nil
	}
	return r.pairsOf(ctx, object.GetName())
}

// pairsOfClass returns the backend of a class with every node.
func (r pairs) pairsOfClass(ctx context.Context, object client.Object) []reconcile.Request {
	class := object.(*storagev1.StorageClass)
	if class.Provisioner != stowagev1alpha1.LocalDriver {
		return nil
	}
	return r.pairsOf(ctx, class.Parameters[stowagev1alpha1.BackendParameter])
}

func (r pairs) pairsOf(ctx context.Context, name string) []reconcile.Request {
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
