package node

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// newNodeState passes nodes that are created or deleted, and changes that decide what is
// attached to them. A resync passes, too.
var newNodeState = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
	return before.ResourceVersion == after.ResourceVersion || attachintent.OnlyNewUse.Update(e) || !equality.Semantic.DeepEqual(annotationsThatCount(before), annotationsThatCount(after))
}}

// annotationsThatCount are the annotations that decide which component attaches, and the
// kubelet's version, which is empty without a kubelet.
func annotationsThatCount(node *corev1.Node) [3]string {
	return [3]string{node.Annotations[attach.ManagedAnnotation], node.Annotations[attach.KeepTerminatedAnnotation], node.Status.NodeInfo.KubeletVersion}
}

// newWants passes pods that are created, deleted, scheduled or stopped. Other changes of their
// status do not change the wanted volumes.
var newWants = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
	return before.UID != after.UID || before.Spec.NodeName != after.Spec.NodeName || attach.HasStopped(before) != attach.HasStopped(after)
}}

// newBindings passes claims that become bound or lose their volume.
var newBindings = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.PersistentVolumeClaim), e.ObjectNew.(*corev1.PersistentVolumeClaim)
	return before.UID != after.UID || before.Spec.VolumeName != after.Spec.VolumeName || before.Status.Phase != after.Status.Phase
}}

// newClaimRefs passes volumes that are created, deleted, or tied to another claim, or have
// other access modes.
var newClaimRefs = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.PersistentVolume), e.ObjectNew.(*corev1.PersistentVolume)
	return before.UID != after.UID || !slices.Equal(index.ClaimRefOf(before), index.ClaimRefOf(after)) ||
		!slices.Equal(before.Spec.AccessModes, after.Spec.AccessModes)
}}

// newNeeds passes drivers with a changed attachRequired.
var newNeeds = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return attach.Required(e.ObjectOld.(*storagev1.CSIDriver)) != attach.Required(e.ObjectNew.(*storagev1.CSIDriver))
}}

// nodeOfPod wakes a pod's node, if the pod has a volume that may be attached.
func nodeOfPod(_ context.Context, object client.Object) []reconcile.Request {
	pod := object.(*corev1.Pod)
	if pod.Spec.NodeName == "" || len(index.ClaimsOf(pod)) == 0 && !slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return attach.IsInline(&volume) }) {
		return nil
	}
	return []reconcile.Request{wake.RequestNamed(pod.Spec.NodeName)}
}

func nodeOfAttachment(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{wake.RequestNamed(object.(*storagev1.VolumeAttachment).Spec.NodeName)}
}

func (r *Reconciler) nodesOfClaim(ctx context.Context, object client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	err := r.client.List(ctx, pods, client.InNamespace(object.GetNamespace()), client.MatchingFields{index.PodsByClaim: object.GetName()},
		wake.Unhurried, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pods", "claim", client.ObjectKeyFromObject(object))
	}
	return nodesOfPods(pods.Items)
}

func (r *Reconciler) nodesOfVolume(ctx context.Context, object client.Object) []reconcile.Request {
	ref := object.(*corev1.PersistentVolume).Spec.ClaimRef
	if ref == nil {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = ref.Namespace, ref.Name
	return r.nodesOfClaim(ctx, claim)
}

// nodesWaitingFor wakes the nodes with pods that want the volume of a deleted attachment.
func (r *Reconciler) nodesWaitingFor(ctx context.Context, object client.Object) []reconcile.Request {
	source := object.(*storagev1.VolumeAttachment).Spec.Source
	volume := attach.Volume{Source: source}
	for _, storage := range index.AttachmentStorage(object) {
		volume.Name = corev1.UniqueVolumeName(storage)
	}
	pods, err := r.podsOf(ctx, volume)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pods", "attachment", object.GetName())
	}
	return nodesOfPods(pods)
}

// allNodes wakes every node: drivers and backends change rarely.
func (r *Reconciler) allNodes(ctx context.Context, _ client.Object) []reconcile.Request {
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing nodes")
	}
	var requests []reconcile.Request
	for i := range nodes.Items {
		requests = append(requests, wake.Request(&nodes.Items[i]))
	}
	return requests
}

// podsOf returns the pods with a volume: through the claims of all PersistentVolumes that
// refer to it, or as inline volume.
func (r *Reconciler) podsOf(ctx context.Context, volume attach.Volume) ([]corev1.Pod, error) {
	if volume.Source.PersistentVolumeName == nil {
		pods := &corev1.PodList{}
		err := r.client.List(ctx, pods, client.MatchingFields{index.PodsByVolume: string(volume.Name)}, wake.Unhurried, client.UnsafeDisableDeepCopy)
		return pods.Items, err
	}
	volumes, err := r.objectsOf(ctx, *volume.Source.PersistentVolumeName)
	if err != nil {
		return nil, err
	}
	var found []corev1.Pod
	for i := range volumes {
		ref := volumes[i].Spec.ClaimRef
		if ref == nil {
			continue
		}
		pods := &corev1.PodList{}
		err := r.client.List(ctx, pods, client.InNamespace(ref.Namespace), client.MatchingFields{index.PodsByClaim: ref.Name}, wake.Unhurried, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing the pods of claim %s/%s: %w", ref.Namespace, ref.Name, err)
		}
		found = append(found, pods.Items...)
	}
	return found, nil
}

// objectsOf returns the PersistentVolumes that refer to the same storage.
func (r *Reconciler) objectsOf(ctx context.Context, name string) ([]corev1.PersistentVolume, error) {
	pv := &corev1.PersistentVolume{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, pv, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	handles := index.HandleOf(pv)
	if len(handles) == 0 {
		return []corev1.PersistentVolume{*pv}, nil
	}
	volumes := &corev1.PersistentVolumeList{}
	err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByHandle: handles[0]}, wake.Unhurried, client.UnsafeDisableDeepCopy)
	return volumes.Items, wrap.Error(err, "listing the volumes of handle %s", handles[0])
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
