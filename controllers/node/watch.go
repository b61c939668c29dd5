package node

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// attachmentDelay is the delay of a reconcile after a change of one of a node's attachments:
// one pass then handles the changes of several.
const attachmentDelay = 100 * time.Millisecond

// nodeOfPod wakes a pod's node, if the pod has a volume that may be attached.
func nodeOfPod(_ context.Context, object client.Object) []reconcile.Request {
	pod := object.(*corev1.Pod)
	if pod.Spec.NodeName == "" || len(index.ClaimsOf(pod)) == 0 && !slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return attach.IsInline(&volume) }) {
		return nil
	}
	return []reconcile.Request{wake.RequestNamed(pod.Spec.NodeName)}
}

func nodeOfDrivers(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{wake.RequestNamed(object.GetName())}
}

func nodeOfAttachment(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{wake.RequestNamed(object.(*storagev1.VolumeAttachment).Spec.NodeName)}
}

// watches finds the nodes that a change wakes.
type watches struct{ client client.Reader }

// nodesOfClaim wakes the nodes with pods that use a claim.
func (w watches) nodesOfClaim(ctx context.Context, object client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	err := w.client.List(ctx, pods, client.InNamespace(object.GetNamespace()), client.MatchingFields{index.PodsByClaim: object.GetName()},
		wake.Unhurried, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pods", "claim", client.ObjectKeyFromObject(object))
	}
	return nodesOfPods(pods.Items)
}

func (w watches) nodesOfVolume(ctx context.Context, object client.Object) []reconcile.Request {
	ref := object.(*corev1.PersistentVolume).Spec.ClaimRef
	if ref == nil {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = ref.Namespace, ref.Name
	return w.nodesOfClaim(ctx, claim)
}

// nodesWaitingFor wakes the nodes with pods that need the volume of a deleted attachment.
func (w watches) nodesWaitingFor(ctx context.Context, object client.Object) []reconcile.Request {
	source := object.(*storagev1.VolumeAttachment).Spec.Source
	volume := attach.Volume{Source: source}
	for _, storage := range index.AttachmentStorage(object) {
		volume.Name = corev1.UniqueVolumeName(storage)
	}
	pods, err := podsOf(ctx, w.client, volume)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pods", "attachment", object.GetName())
	}
	return nodesOfPods(pods)
}

// allNodes wakes every node: drivers and backends change rarely.
func (w watches) allNodes(ctx context.Context, _ client.Object) []reconcile.Request {
	nodes := &corev1.NodeList{}
	if err := w.client.List(ctx, nodes, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing nodes")
	}
	var requests []reconcile.Request
	for i := range nodes.Items {
		requests = append(requests, wake.Request(&nodes.Items[i]))
	}
	return requests
}

func nodesOfPods(pods []corev1.Pod) []reconcile.Request {
	var requests []reconcile.Request
	for i := range pods {
		if name := pods[i].Spec.NodeName; name != "" && !slices.Contains(requests, wake.RequestNamed(name)) {
			requests = append(requests, wake.RequestNamed(name))
		}
	}
	return requests
}
