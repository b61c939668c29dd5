package persistentvolumeclaim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/uses"
)

// findNode looks up the node of the claim's first consumer, for classes that wait for it. The
// scheduler chose it, or the pod was created with a node name, which no scheduler sees.
func (r *Reconciler) findNode(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	if !storageclass.WaitsForConsumer(scope.Class) {
		return nil, nil
	}
	name, placed, err := r.selectedNode(ctx, scope.Claim)
	if err != nil {
		return nil, err
	}
	if name == "" {
		scope.Request.Delayed = !scope.Placed
		return nil, nil
	}
	// The scheduler writes the annotation if no existing volume suits the pod.
	scope.Request.Provisioning = scope.Claim.Annotations[step.AnnSelectedNode] != "" && scope.Class.Provisioner != provisioning.NoProvisioner
	node := &corev1.Node{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return r.provisioner.LeaveMissingNode(ctx, scope, name, placed)
		}
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	scope.Request.Node = node
	return nil, nil
}

// selectedNode returns the node of the claim's pod, and what chose it.
func (r *Reconciler) selectedNode(ctx context.Context, claim *corev1.PersistentVolumeClaim) (name, by string, err error) {
	if node := claim.Annotations[step.AnnSelectedNode]; node != "" {
		return node, "the scheduler", nil
	}
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, client.InNamespace(claim.Namespace), client.MatchingFields{index.PodsByClaim: claim.Name}); err != nil {
		return "", "", fmt.Errorf("listing the pods of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	placed := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Spec.NodeName == "" || uses.IsFinished(&pod) || !pod.DeletionTimestamp.IsZero()
	})
	slices.SortFunc(placed, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range placed {
		// One pod on a missing node must not block the others.
		if name, by = pod.Spec.NodeName, "pod "+pod.Name; r.client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{}) == nil {
			break
		}
	}
	return name, by, nil
}
