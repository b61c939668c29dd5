package volumeattachment

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/volume"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// mayOnlyAwait reports whether a volume in use is only a pending mount. A pod then came back
// to the node, and waits for the very detach that would wait for the node. The pods are read
// live.
func (r *Reconciler) mayOnlyAwait(ctx context.Context, leaves *leaving, node *corev1.Node) (bool, error) {
	name := volume.UniqueName(leaves.attachment.Spec.Attacher, leaves.volume)
	if leaves.pv == nil || !attach.MayBePendingMount(node, name, leaves.attachment) {
		return false, nil
	}
	claims, err := r.claimsTo(ctx, leaves)
	if err != nil {
		return false, err
	}
	pods := &corev1.PodList{}
	if err := r.live.List(ctx, pods, client.MatchingFields{index.PodsByNode: node.Name}); err != nil {
		return false, fmt.Errorf("listing the pods of node %s: %w", node.Name, err)
	}
	var users []*corev1.Pod
	for i := range pods.Items {
		if slices.ContainsFunc(index.ClaimsOf(&pods.Items[i]), func(name string) bool {
			return slices.Contains(claims, types.NamespacedName{Namespace: pods.Items[i].Namespace, Name: name})
		}) {
			users = append(users, &pods.Items[i])
		}
	}
	return attach.ArePendingMounts(users), nil
}

// claimsTo returns the claims of all PersistentVolumes that refer to the storage.
func (r *Reconciler) claimsTo(ctx context.Context, leaves *leaving) ([]types.NamespacedName, error) {
	volumes := &corev1.PersistentVolumeList{}
	handle := volume.Key(leaves.attachment.Spec.Attacher, leaves.volume)
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByHandle: handle}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the volumes of handle %s: %w", handle, err)
	}
	var claims []types.NamespacedName
	for i := range volumes.Items {
		if ref := volumes.Items[i].Spec.ClaimRef; ref != nil {
			claims = append(claims, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		}
	}
	return claims, nil
}
