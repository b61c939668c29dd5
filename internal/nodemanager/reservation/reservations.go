// Package reservation keeps a ReadWriteOncePod volume for one pod of the node.
package reservation

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Reservations reserve each ReadWriteOncePod volume for one pod of the node. The record of a
// reservation is the volume's directory in the pod's: it is made before anything is mounted,
// and survives a restart. Methods may be called concurrently.
type Reservations struct {
	tree   poddir.Tree
	cached client.Reader
	// mu keeps two pods from reserving the same volume at once.
	mu sync.Mutex
}

// New returns the reservations that the pods' directories in tree record. It reads pods from cached.
func New(tree poddir.Tree, cached client.Reader) *Reservations {
	return &Reservations{tree: tree, cached: cached}
}

// Ensure reserves the volume for the pod, if it is ReadWriteOncePod. If another pod has the volume,
// it returns what the pod waits for (see resolve.WaitFor).
func (r *Reservations) Ensure(ctx context.Context, pod *corev1.Pod, resolved *resolve.ResolvedVolume) error {
	if !resolve.IsForOnePod(resolved) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := resolved.Location()
	reservedBy, err := r.reservedBy(ctx, pod.UID, resolved)
	if err != nil {
		return err
	}
	if reservedBy == "" {
		return r.tree.Reserve(pod.UID, at)
	}
	name := string(reservedBy)
	if other, err := podclaims.Find(ctx, r.cached, reservedBy); err == nil && other != nil {
		name = other.Name
	}
	return resolve.WaitFor("volume %s is ReadWriteOncePod, and pod %s has it on this node: delete that pod, or wait until it ends", at.Name, name)
}

// reservedBy finds another pod that has the volume; "" if none has. An agent of the previous layout
// may have mounted it under another type.
func (r *Reservations) reservedBy(ctx context.Context, pod types.UID, resolved *resolve.ResolvedVolume) (types.UID, error) {
	ignored := func(other types.UID) bool { return r.ownsName(ctx, other, resolved) }
	at := resolved.Location()
	found, err := r.tree.ReservedBy(pod, at, ignored)
	if mover, moves := resolved.Plugin.(volumes.Mover); found == "" && err == nil && moves {
		if at.Plugin = mover.EarlierName(resolved.Spec); at.Plugin != "" {
			return r.tree.ReservedBy(pod, at, ignored)
		}
	}
	return found, err
}

// ownsName reports whether another pod has a volume of its own whose directory has the name of this
// volume object. That pod has its own volume, and not the object. checkName keeps both from being
// in one pod.
func (r *Reservations) ownsName(ctx context.Context, uid types.UID, resolved *resolve.ResolvedVolume) bool {
	other, err := podclaims.Find(ctx, r.cached, uid)
	if err != nil || other == nil || resolved.IsBlock() {
		return false
	}
	return slices.ContainsFunc(other.Spec.Volumes, func(own corev1.Volume) bool {
		return own.Name == resolved.Name() && podclaims.ClaimNameOf(other, own) == "" &&
			resolved.Plugin.CanHandle(volumes.Spec{Pod: other, Volume: own})
	})
}
