// Package liveread reads from the API server what a cache may not show yet. Concurrent
// reconciles share one read. Destructive steps depend on it: an answer is never older than the
// call.
package liveread

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/sharedread"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Reads are live reads that many claims or volumes need at the same time. Unshared, each would
// cost as much as the cluster is large.
type Reads struct {
	// Claims reads the claims that volumes refer to.
	Claims *Claims
	// Backends reads one backend by name.
	Backends *sharedread.Reads[string, *stowagev1alpha1.StorageBackend]
	// Pods lists the pods of a namespace.
	Pods *sharedread.Reads[string, []corev1.Pod]
	// Handles lists all volumes, by storage handle.
	Handles *sharedread.Reads[struct{}, ByHandle]
	// Attachments lists all attachments.
	Attachments *sharedread.Reads[struct{}, Attachments]
	// Users lists all nodes, by the volumes that they use.
	Users *sharedread.Reads[struct{}, Users]
	// Nodes reads one node by name.
	Nodes *sharedread.Reads[string, *corev1.Node]
}

// ByHandle groups the volumes that refer to the same storage, by its handle.
type ByHandle map[string][]volumeIdentity

type volumeIdentity struct {
	Name string
	UID  types.UID
}

// New returns shared reads over a live reader.
func New(live client.Reader) Reads {
	return Reads{
		Claims: newClaims(live),
		Backends: sharedread.New(func(ctx context.Context, name string) (*stowagev1alpha1.StorageBackend, error) {
			object := &stowagev1alpha1.StorageBackend{}
			err := live.Get(ctx, client.ObjectKey{Name: name}, object)
			return object, err
		}),
		Pods: sharedread.New(func(ctx context.Context, namespace string) ([]corev1.Pod, error) {
			pods := &corev1.PodList{}
			err := live.List(ctx, pods, client.InNamespace(namespace))
			return pods.Items, wrap.Error(err, "listing the pods of namespace %s", namespace)
		}),
		Handles: sharedread.New(func(ctx context.Context, _ struct{}) (ByHandle, error) {
			volumes := &corev1.PersistentVolumeList{}
			if err := live.List(ctx, volumes); err != nil {
				return nil, fmt.Errorf("listing the volumes: %w", err)
			}
			return GroupByHandle(volumes.Items), nil
		}).Paced(),
		Attachments: sharedread.New(func(ctx context.Context, _ struct{}) (Attachments, error) {
			return listAttachments(ctx, live)
		}).Paced(),
		Users: sharedread.New(func(ctx context.Context, _ struct{}) (Users, error) {
			return listUsers(ctx, live)
		}),
		Nodes: sharedread.New(func(ctx context.Context, name string) (*corev1.Node, error) {
			node := &corev1.Node{}
			err := live.Get(ctx, client.ObjectKey{Name: name}, node)
			return node, err
		}),
	}
}

// GroupByHandle groups volumes by the storage that they refer to.
func GroupByHandle(volumes []corev1.PersistentVolume) ByHandle {
	found := make(ByHandle, len(volumes))
	for i := range volumes {
		for _, handle := range index.HandleOf(&volumes[i]) {
			found[handle] = append(found[handle], volumeIdentity{Name: volumes[i].Name, UID: volumes[i].UID})
		}
	}
	return found
}

// Beside returns the name of another volume that refers to the same storage, or "".
func (s ByHandle) Beside(pv *corev1.PersistentVolume) string {
	for _, handle := range index.HandleOf(pv) {
		for _, other := range s[handle] {
			if other.UID != pv.UID {
				return other.Name
			}
		}
	}
	return ""
}
