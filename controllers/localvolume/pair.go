package localvolume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/storageclass"
)

// nameHash is the number of hexadecimal digits that stand for a name that may be too long.
const nameHash = 16

// pair is a backend on a node; an object that does not exist is nil.
type pair struct {
	name   string
	object *stowagev1alpha1.StorageBackend
	node   *corev1.Node
	disk   *stowagev1alpha1.LocalDisk
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

// LocalDiskName returns the name of the disk of a backend on a node. It is deterministic and
// unique to the pair: the part after the last dot is the node's.
func LocalDiskName(name, node string) string { return name + "." + hashOf(node) }

func hashOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:nameHash]
}

// Found reads a cluster-scoped object. It returns nil if there is none.
func Found[T client.Object](ctx context.Context, reader client.Reader, name string, object T) (T, error) {
	var none T
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return object, nil
}
