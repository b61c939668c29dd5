package volumeattachment

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// noForce allows a detach because the node has released the volume.
var noForce = attach.Force{Allowed: true}

// mayDetach decides whether a volume can be detached from its node. It can once the node has
// it in neither volumesInUse nor volumesAttached, or by force if the policy allows it. The
// node is read live: kube-controller-manager, too, may have decided on outdated state.
func (r *Reconciler) mayDetach(ctx context.Context, leaves *leaving) (attach.Force, error) {
	node, err := r.liveNode(ctx, leaves.from.Name)
	if err != nil {
		return attach.Force{}, err
	}
	if node != nil && isAnotherMachine(node, leaves.from.ProviderID) {
		// The status of a new machine of the same name shows nothing about the earlier one.
		node = nil
	}
	now := r.clock.Now()
	if node != nil {
		if leaves.from.ProviderID == "" {
			leaves.from.ProviderID = node.Spec.ProviderID
		}
		name := volume.UniqueName(leaves.attachment.Spec.Attacher, leaves.volume)
		letGo, after := attach.HasLetGo(node, name, leaves.attachment, now)
		switch {
		case letGo:
			return noForce, nil
		case after > 0:
			return attach.Force{Reason: fmt.Sprintf("node %s registered anew, and has yet to tell what it uses", node.Name), After: after}, nil
		}
		if awaited, err := r.mayOnlyAwait(ctx, leaves, node); awaited || err != nil {
			return noForce, err
		}
	}
	condition := attach.ConditionOf(node)
	if !condition.Ready {
		if condition.Machine, err = backend.Observe(ctx, leaves.opened, leaves.from); err != nil {
			return attach.Force{}, err
		}
	}
	may := attach.MayForce(condition, attach.PolicyOf(leaves.object.Spec.Attachment), now)
	if !may.Allowed && may.After == 0 {
		// A change of the volume's pods triggers no reconcile.
		may.After = retryRefused
	}
	return may, nil
}

func (r *Reconciler) liveNode(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := r.shared.Nodes.Get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	return node, nil
}

// tellForced records an event, and counts, that a detach is by force. It does so before the
// call, because the node may be Ready again when it returns. It does so once, however often
// the call is repeated.
func (r *Reconciler) tellForced(leaves *leaving, why attach.Force) {
	if why == noForce || !r.forced.IsNews(client.ObjectKeyFromObject(leaves.attachment), string(leaves.attachment.UID)) {
		return
	}
	r.tell(leaves.attachment, leaves.pv, reasonForcedDetach,
		fmt.Sprintf("taking it from node %s, which has not let go of it: %s", leaves.from.Name, why.Reason))
	if r.storage.Metrics != nil {
		r.storage.Metrics.Forced(leaves.object.Name)
	}
}
