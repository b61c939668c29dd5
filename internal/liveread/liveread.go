// Package liveread reads from the API server what a cache may not show yet, where nothing proves that it does. Concurrent
// reconciles share one read. Destructive steps depend on it: an answer is never older than the
// call.
package liveread

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
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
	// Handles reads which volumes refer to the same storage.
	Handles *Handles
	// Attachments lists all attachments.
	Attachments *sharedread.Reads[struct{}, Attachments]
	// Users lists all nodes, by the volumes that they use.
	Users *sharedread.Reads[struct{}, Users]
	// Nodes reads one node by name.
	Nodes *sharedread.Reads[string, *corev1.Node]
}

// New returns shared reads over a live reader.
func New(live client.Reader) Reads {
	return Reads{
		Claims: newClaims(live),
		Backends: sharedread.New(func(ctx context.Context, name string) (*stowagev1alpha1.StorageBackend, error) {
			object := &stowagev1alpha1.StorageBackend{}
			err := live.Get(ctx, client.ObjectKey{Name: name}, object)
			return object, err
		}).Paced(),
		Pods: sharedread.New(func(ctx context.Context, namespace string) ([]corev1.Pod, error) {
			pods := &corev1.PodList{}
			err := live.List(ctx, pods, client.InNamespace(namespace))
			return pods.Items, wrap.Error(err, "listing the pods of namespace %s", namespace)
		}),
		Handles: newHandles(live),
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

// Follow saves reads of what a cache's watches show. It must be called before the first read.
func (r Reads) Follow(ctx context.Context, cached cache) error {
	return errors.Join(r.Claims.follow(ctx, cached), r.Handles.follow(ctx, cached))
}
