package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/sharedread"
)

// liveReads are the reads of the API server itself that many claims or volumes need
// at the same time, each of which would be as costly as the cluster is large.
type liveReads struct {
	// backends reads one, by name.
	backends *sharedread.Reads[string, *stowagev1alpha1.StorageBackend]
	// pods lists those of a namespace.
	pods *sharedread.Reads[string, []corev1.Pod]
	// handles lists all volumes, by what storage they stand for.
	handles *sharedread.Reads[struct{}, standing]
	// attachments lists all, by what they are of.
	attachments *sharedread.Reads[struct{}, attachmentsOf]
	// users lists all nodes, by what they use.
	users *sharedread.Reads[struct{}, usersOf]
	// nodes reads one, by name.
	nodes *sharedread.Reads[string, *corev1.Node]
}

// standing are the volumes that stand for the same storage, by its handle.
type standing map[string][]volumeIdentity

type volumeIdentity struct {
	name string
	uid  types.UID
}

func newLiveReads(live client.Reader) liveReads {
	return liveReads{
		backends: sharedread.New(func(ctx context.Context, name string) (*stowagev1alpha1.StorageBackend, error) {
			object := &stowagev1alpha1.StorageBackend{}
			err := live.Get(ctx, client.ObjectKey{Name: name}, object)
			return object, err
		}),
		pods: sharedread.New(func(ctx context.Context, namespace string) ([]corev1.Pod, error) {
			pods := &corev1.PodList{}
			err := live.List(ctx, pods, client.InNamespace(namespace))
			return pods.Items, wrap(err, "listing the pods of namespace %s", namespace)
		}),
		handles: sharedread.New(func(ctx context.Context, _ struct{}) (standing, error) {
			volumes := &corev1.PersistentVolumeList{}
			if err := live.List(ctx, volumes); err != nil {
				return nil, fmt.Errorf("listing the volumes: %w", err)
			}
			return standingOf(volumes.Items), nil
		}),
		attachments: sharedread.New(func(ctx context.Context, _ struct{}) (attachmentsOf, error) {
			return listAttachments(ctx, live)
		}).Paced(),
		users: sharedread.New(func(ctx context.Context, _ struct{}) (usersOf, error) {
			return listUsers(ctx, live)
		}),
		nodes: sharedread.New(func(ctx context.Context, name string) (*corev1.Node, error) {
			node := &corev1.Node{}
			err := live.Get(ctx, client.ObjectKey{Name: name}, node)
			return node, err
		}),
	}
}

func standingOf(volumes []corev1.PersistentVolume) standing {
	found := make(standing, len(volumes))
	for i := range volumes {
		for _, handle := range handleOf(&volumes[i]) {
			found[handle] = append(found[handle], volumeIdentity{name: volumes[i].Name, uid: volumes[i].UID})
		}
	}
	return found
}

// beside is the name of another volume object that stands for the same storage; "" where
// there is none.
func (s standing) beside(pv *corev1.PersistentVolume) string {
	for _, handle := range handleOf(pv) {
		for _, other := range s[handle] {
			if other.uid != pv.UID {
				return other.name
			}
		}
	}
	return ""
}
