package volumeagent

import (
	"context"
	"time"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
)

// grow gives a volume that was made the capacity that it asks for, if there is
// room, says in a condition how that went, and returns when to look again. A volume
// that can't have more keeps what it has, and can be mounted.
func (r *Reconciler) grow(ctx context.Context, volume *stowagev1alpha1.NodeVolume) time.Duration {
	if had := volume.Status.Capacity; had == nil || had.Cmp(volume.Spec.Capacity) < 0 {
		if err := r.Store.Grant(ctx, spec.VolumeOf(volume), spec.Others(ctx, r.Client, r.NodeName, volume.Name)); err != nil {
			setCondition(volume, stowagev1alpha1.GrantedCondition, reasonOf(err), layout.MessageOf(err, r.Store.Base))
			return problemRetry
		}
	}
	setGranted(volume)
	return checkInterval
}

// setGranted says, in memory, that a volume has what it asks for.
func setGranted(volume *stowagev1alpha1.NodeVolume) {
	if had := volume.Status.Capacity; had == nil || had.Cmp(volume.Spec.Capacity) < 0 {
		volume.Status.Capacity = new(volume.Spec.Capacity.DeepCopy())
	}
	setCondition(volume, stowagev1alpha1.GrantedCondition, stowagev1alpha1.ReasonReady, "the volume has the capacity that is asked for")
}
