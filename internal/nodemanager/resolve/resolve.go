// Package resolve finds the volume object of a pod's claim, whether the pod may use it on this node,
// and which volume type mounts it. It reads live, as a node may get the objects of its pods, and
// not watch them. For an unsupported type, its error has an alternative. It never writes to the API
// server.
package resolve

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Resolve finds the volume object behind a pod's volume, checks that this pod
// may use it here, and finds its type.
func (r *Resolver) Resolve(ctx context.Context, pod *corev1.Pod, volume corev1.Volume) (*ResolvedVolume, error) {
	resolved := &ResolvedVolume{Spec: volumes.Spec{Pod: pod, Volume: volume}}
	if claim := podclaims.ClaimNameOf(pod, volume); claim != "" {
		if err := r.resolveClaim(ctx, resolved, claim); err != nil {
			return nil, err
		}
	}
	if volume.CSI != nil && ptr.Deref(volume.CSI.ReadOnly, false) {
		resolved.Access = mount.ReadOnly
	}
	if isInline(volume) {
		if err := r.resolveInline(ctx, resolved); err != nil {
			return nil, err
		}
	}
	types := r.Types
	if resolved.IsBlock() {
		types = r.Devices
	}
	plugin, known := types.For(resolved.Spec)
	if !known {
		return nil, ErrUnserved(resolved.Spec)
	}
	resolved.Plugin = plugin
	if err := checkName(resolved); err != nil {
		return nil, err
	}
	return resolved, nil
}

// resolveClaim resolves a volume with a claim.
func (r *Resolver) resolveClaim(ctx context.Context, resolved *ResolvedVolume, claimName string) error {
	spec, claim := &resolved.Spec, &corev1.PersistentVolumeClaim{}
	name := spec.Pod.Namespace + "/" + claimName
	if err := r.get(ctx, client.ObjectKey{Namespace: spec.Pod.Namespace, Name: claimName}, claim, "claim "+name); err != nil {
		return err
	}
	if spec.Volume.Ephemeral != nil && ephemeral.VolumeIsForPod(spec.Pod, claim) != nil {
		return WaitFor("claim %s exists and was not made for this pod: delete it, or rename the volume", name)
	}
	if err := checkClaim(claim, name); err != nil {
		return err
	}
	volume := &corev1.PersistentVolume{}
	if err := r.get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume, "volume "+claim.Spec.VolumeName); err != nil {
		return err
	}
	err := CheckVolume(volume, claim)
	if err == nil {
		err = r.checkAffinity(ctx, volume)
	}
	if err != nil {
		return err
	}
	resolved.Refused = refusalOf(claim, name)
	if volume, err = r.resolveExisting(ctx, resolved, volume); err != nil {
		return err
	}
	spec.PersistentVolume = volume
	spec.Access = accessOf(volume, onlyReads(spec.Pod, claimName))
	return nil
}

// checkClaim returns what a claim waits for before it can be mounted.
func checkClaim(claim *corev1.PersistentVolumeClaim, name string) error {
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		return WaitFor("claim %s lost its volume %s", name, claim.Spec.VolumeName)
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		if err := refusalOf(claim, name); err != nil {
			return err
		}
		return WaitFor("waiting for claim %s to be bound%s", name, whyUnbound(claim))
	}
	return nil
}

// whyUnbound repeats the claim's own condition, so that the pod has the cause, too.
func whyUnbound(claim *corev1.PersistentVolumeClaim) string {
	for _, condition := range claim.Status.Conditions {
		if condition.Type == stowagev1alpha1.BindableCondition && condition.Status == corev1.ConditionFalse {
			return ": " + condition.Message
		}
	}
	return ""
}

// refusalOf returns why no further pod may use a claim. A pod that already uses it keeps it: the
// claim exists until that pod is gone.
func refusalOf(claim *corev1.PersistentVolumeClaim, name string) error {
	if claim.DeletionTimestamp == nil {
		return nil
	}
	return WaitFor("claim %s is being deleted: create it again once it is gone", name)
}

// CheckVolume returns an error unless the volume's claimRef is the claim. A volume of another claim,
// or of an earlier one of that name, has another owner's data.
func CheckVolume(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if reference := volume.Spec.ClaimRef; reference == nil || reference.UID != claim.UID {
		return WaitFor("volume %s isn't bound to claim %s/%s, although the claim names it", volume.Name, claim.Namespace, claim.Name)
	}
	return nil
}

// checkAffinity returns an error unless the volume can be used on this node. A cached node is enough
// for yes; no needs a live read.
func (r *Resolver) checkAffinity(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.NodeAffinity == nil {
		return nil
	}
	node, key := &corev1.Node{}, client.ObjectKey{Name: r.Node}
	if err := r.Cached.Get(ctx, key, node); err == nil && storagehelpers.CheckNodeAffinity(volume, node.Labels) == nil {
		return nil
	}
	if err := r.get(ctx, key, node, "node "+r.Node); err != nil {
		return err
	}
	if err := storagehelpers.CheckNodeAffinity(volume, node.Labels); err != nil {
		return fmt.Errorf("volume %s can't be used on node %s: the node's labels don't match the volume's nodeAffinity", volume.Name, r.Node)
	}
	return nil
}
