// Package resolve finds out what a volume of a pod is: which volume object is behind its
// claim, whether this pod may use it on this node, and which volume type mounts it. It reads
// live, as a node may get the objects of its pods and not watch them. For a volume of a type
// that isn't served it says what to use instead. It never writes to the API server.
package resolve

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// resolveClaim completes what is known of a volume that the pod asks for by a claim.
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

// checkClaim says what is missing for a claim to be mounted.
func checkClaim(claim *corev1.PersistentVolumeClaim, name string) error {
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		return WaitFor("claim %s lost its volume %s", name, claim.Spec.VolumeName)
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		if err := refusalOf(claim, name); err != nil {
			return err
		}
		return WaitFor("waiting for claim %s to be bound", name)
	}
	return nil
}

// refusalOf says why no further pod may begin to use a claim. One that does already
// keeps it: the claim is there until that pod goes.
func refusalOf(claim *corev1.PersistentVolumeClaim, name string) error {
	if claim.DeletionTimestamp == nil {
		return nil
	}
	return WaitFor("claim %s is being deleted: create it again once it is gone", name)
}

// CheckVolume makes sure that the volume agrees that it is the claim's: one whose
// claimRef names another claim, or an earlier one of that name, holds others' data.
func CheckVolume(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if reference := volume.Spec.ClaimRef; reference == nil || reference.UID != claim.UID {
		return WaitFor("volume %s isn't bound to claim %s/%s, although the claim names it", volume.Name, claim.Namespace, claim.Name)
	}
	return nil
}

// checkAffinity makes sure that the volume can be used on this node. That it can is
// believed of the node as the cache has it; that it can't, when read live.
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
