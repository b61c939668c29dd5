package nodemanager

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// ensureHeld makes a pod the one that has a volume which is for one pod alone, or
// says that another one has it. What tells is the volume's directory in a pod's: it
// is made here, before anything is mounted, and outlives this process.
func (r *Reconciler) ensureHeld(ctx context.Context, pod *corev1.Pod, resolved *resolve.ResolvedVolume) error {
	if !resolve.IsForOnePod(resolved) {
		return nil
	}
	// Pods are looked at beside each other.
	r.holding.Lock()
	defer r.holding.Unlock()
	at := resolved.Location()
	holder, err := r.Tree.HolderBeside(pod.UID, at, func(other types.UID) bool { return r.ownsName(ctx, other, resolved) })
	if err != nil {
		return err
	}
	if holder == "" {
		return r.Tree.Hold(pod.UID, at)
	}
	name := string(holder)
	if other, err := r.findPod(ctx, holder); err == nil && other != nil {
		name = other.Name
	}
	return resolve.WaitFor("volume %s is ReadWriteOncePod, and pod %s has it on this node: delete that pod, or wait until it ends", at.Name, name)
}

// ownsName says whether another pod names a volume itself that has the directory which the
// volume object would have there: it has that one, and not the object. checkName keeps both
// from being in one pod.
func (r *Reconciler) ownsName(ctx context.Context, uid types.UID, resolved *resolve.ResolvedVolume) bool {
	other, err := r.findPod(ctx, uid)
	if err != nil || other == nil || resolved.IsBlock() {
		return false
	}
	return slices.ContainsFunc(other.Spec.Volumes, func(own corev1.Volume) bool {
		return own.Name == resolved.Name() && podclaims.ClaimNameOf(other, own) == "" &&
			resolved.Plugin.CanHandle(volumes.Spec{Pod: other, Volume: own})
	})
}
