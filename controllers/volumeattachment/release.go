package volumeattachment

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wake"
)

// detaching is the state of one detach.
type detaching struct {
	attachment *storagev1.VolumeAttachment
	// pv is nil if the PersistentVolume is gone.
	pv *corev1.PersistentVolume
	// from is the machine that it may be attached to, volume its id in the backend.
	from   backend.NodeIdentity
	volume string
	opened opened
	// isCached is true if the attachment is the cache's, which one of this process's own writes vouches for.
	isCached bool
	// released is the node as it was when it had released the volume, before the attachment was deleted; nil if unknown.
	released *corev1.Node
	// callFailed is true if the backend's call returned an error.
	callFailed bool
}

// releases decides whether nodes have released volumes.
type releases struct {
	client client.Reader
	live   client.Reader
	shared liveread.Reads
	clock  clock.PassiveClock
	// missing is when the machine of an attachment was first seen to be gone, or to be another, by
	// the attachment's UID.
	missing *wake.Instants
}

// released allows a detach because the node has released the volume.
var released = attach.Force{Allowed: true}

// mayDetach decides whether a volume can be detached from its node. It can once the node has
// it in neither volumesInUse nor volumesAttached, or by force if the policy allows it. The
// node is read live: kube-controller-manager, too, may have decided on outdated state.
//
// No read is needed where this process saw the release, and nothing else may have marked the volume as attached since. A kubelet
// that lists it again waits for that mark: it lists a volume before it reads volumesAttached, and mounts it after.
func (r releases) mayDetach(ctx context.Context, d *detaching) (attach.Force, error) {
	if r.sawRelease(d) {
		return released, nil
	}
	node, err := liveNode(ctx, r.shared, d.from.Name)
	if err != nil {
		return attach.Force{}, err
	}
	if node != nil && isAnotherMachine(node, d.from.ProviderID) {
		// The status of a new machine of the same name shows nothing about the earlier one.
		node = nil
	}
	now := r.clock.Now()
	condition := attach.ConditionOf(node)
	if node != nil {
		is, after := r.isReleased(d, node)
		switch {
		case is:
			return released, nil
		case after > 0:
			return attach.Force{Reason: fmt.Sprintf("node %s registered again, and has yet to report what it uses", node.Name), After: after}, nil
		}
		if pending, err := r.isPendingMount(ctx, d, node); pending || err != nil {
			return released, err
		}
	}
	policy := r.policyOf(d, &condition, now)
	if !condition.Ready {
		if condition.Machine, err = backend.Observe(ctx, d.opened.storage, d.from); err != nil {
			return attach.Force{}, err
		}
	}
	may := attach.MayForce(condition, policy, now)
	if !may.Allowed && may.After == 0 {
		// A change of the volume's pods triggers no reconcile.
		may.After = retryRefused
	}
	return may, nil
}

// sawRelease reports whether this process saw the node release the volume.
func (r releases) sawRelease(d *detaching) bool {
	if d.released == nil || isAnotherMachine(d.released, d.from.ProviderID) {
		return false
	}
	is, _ := r.isReleased(d, d.released)
	return is
}

// isReleased reports whether a node has released the volume, or when that will be certain.
func (r releases) isReleased(d *detaching, node *corev1.Node) (is bool, after time.Duration) {
	r.missing.Forget(string(d.attachment.UID))
	if d.from.ProviderID == "" {
		d.from.ProviderID = node.Spec.ProviderID
	}
	return attach.IsReleased(node, d.name(), d.attachment, r.clock.Now())
}

// policyOf returns the policy of a volume's backend. About a machine of a CSI driver that isn't one
// of Stowage's no cloud can be queried: there the time since which it is gone counts.
func (r releases) policyOf(d *detaching, condition *attach.NodeCondition, now time.Time) attach.Policy {
	policy := attach.PolicyOf(d.opened.object.Spec.Attachment)
	policy.MissingCounts = d.opened.object.Spec.CSI != nil
	if !condition.Exists && policy.MissingCounts {
		condition.MissingSince = r.missing.Since(string(d.attachment.UID), now)
	}
	return policy
}

// name returns the kubelet's name of the volume.
func (d *detaching) name() corev1.UniqueVolumeName {
	return volume.UniqueName(d.attachment.Spec.Attacher, d.volume)
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// isPendingMount reports whether a volume in use is only a pending mount. A pod then came back
// to the node, and waits for the very detach that would wait for the node. The pods are read
// live.
func (r releases) isPendingMount(ctx context.Context, d *detaching, node *corev1.Node) (bool, error) {
	if d.pv == nil || !attach.MayBePendingMount(node, d.name(), d.attachment) {
		return false, nil
	}
	claims, err := r.claimsOf(ctx, volume.Key(d.attachment.Spec.Attacher, d.volume))
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

// claimsOf returns the claims of all PersistentVolumes with a handle.
func (r releases) claimsOf(ctx context.Context, handle string) ([]types.NamespacedName, error) {
	volumes, err := index.VolumesOf(ctx, r.client, handle)
	if err != nil {
		return nil, err
	}
	var claims []types.NamespacedName
	for i := range volumes {
		if ref := volumes[i].Spec.ClaimRef; ref != nil {
			claims = append(claims, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		}
	}
	return claims, nil
}
