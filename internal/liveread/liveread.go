// Package liveread reads from the API server itself what a cache may not show yet. Reads
// that many reconciles need at the same time are made once for all of them. Destructive
// steps depend on it: an answer is never older than its question.
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

// Reads are the reads of the API server itself that many claims or volumes need
// at the same time, each of which would be as costly as the cluster is large.
type Reads struct {
	// Backends reads one, by name.
	Backends *sharedread.Reads[string, *stowagev1alpha1.StorageBackend]
	// Pods lists those of a namespace.
	Pods *sharedread.Reads[string, []corev1.Pod]
	// Handles lists all volumes, by what storage they stand for.
	Handles *sharedread.Reads[struct{}, ByHandle]
	// Attachments lists all, by what they are of.
	Attachments *sharedread.Reads[struct{}, Attachments]
	// Users lists all nodes, by what they use.
	Users *sharedread.Reads[struct{}, Users]
	// Nodes reads one, by name.
	Nodes *sharedread.Reads[string, *corev1.Node]
}

// ByHandle are the volumes that stand for the same storage, by its handle.
type ByHandle map[string][]volumeIdentity

type volumeIdentity struct {
	Name string
	UID  types.UID
}

// New makes the shared reads of a reader of the API server itself.
func New(live client.Reader) Reads {
	return Reads{
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
		}),
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

// GroupByHandle groups volumes by the storage that they stand for.
func GroupByHandle(volumes []corev1.PersistentVolume) ByHandle {
	found := make(ByHandle, len(volumes))
	for i := range volumes {
		for _, handle := range index.HandleOf(&volumes[i]) {
			found[handle] = append(found[handle], volumeIdentity{Name: volumes[i].Name, UID: volumes[i].UID})
		}
	}
	return found
}

// Beside is the name of another volume object that stands for the same storage; "" where
// there is none.
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
