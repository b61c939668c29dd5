package localvolume

import (
	"context"
	"time"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// grow gives a volume that was made the capacity that it asks for, if there is
// room, says in a condition how that went, and returns when to look again. A volume
// that can't have more keeps what it has, and can be mounted.
func (r *Reconciler) grow(ctx context.Context, volume *stowagev1alpha1.LocalVolume) time.Duration {
	if had := volume.Status.Capacity; had == nil || had.Cmp(volume.Spec.Capacity) < 0 {
		if err := r.Store.Grant(ctx, volumeOf(volume), othersOf(ctx, r.Client, r.NodeName, volume.Name)); err != nil {
			setCondition(volume, stowagev1alpha1.GrantedCondition, reasonOf(err), messageOf(err, r.Store.Base))
			return problemRetry
		}
	}
	setGranted(volume)
	return checkInterval
}

// setGranted says, in memory, that a volume has what it asks for.
func setGranted(volume *stowagev1alpha1.LocalVolume) {
	if had := volume.Status.Capacity; had == nil || had.Cmp(volume.Spec.Capacity) < 0 {
		volume.Status.Capacity = new(volume.Spec.Capacity.DeepCopy())
	}
	setCondition(volume, stowagev1alpha1.GrantedCondition, stowagev1alpha1.ReasonReady, "the volume has the capacity that is asked for")
}

// Grant gives a volume that was made the capacity that it asks for, if there is
// room for it beside the others of the node. What was granted once is held for the
// volume until its LocalVolume says so, or asks for less.
func (s *Store) Grant(ctx context.Context, volume Volume, others Lister) error {
	turn, err := s.Rooms.takeTurn(ctx, volume.Path)
	if err != nil {
		return err
	}
	defer turn.end()
	if volume.Image != nil {
		return s.growImage(turn, volume, others)
	}
	if s.Rooms.has(volume.Name, volume.Bytes) < volume.Bytes {
		if err := s.Rooms.checkGrowth(turn, volume, volume.Used, others); err != nil {
			return err
		}
	}
	if err := limit(s.Base, volume, volume.Bytes); err != nil {
		return err
	}
	s.Rooms.grew(volume.Name, volume.Bytes)
	return nil
}
