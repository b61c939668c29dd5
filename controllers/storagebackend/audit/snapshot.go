package audit

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/volume"
)

// snapshot is what the cluster records of the storage of one backend.
type snapshot struct {
	driver string
	// live maps the UIDs of live claims to the volumes that they are bound to, or "". pending
	// has those of them with a pending operation.
	live    map[types.UID]string
	pending map[types.UID]bool
	// recorded has the driver and handle of all PersistentVolumes.
	recorded map[string]bool
	// made are the PersistentVolumes of the backend that must have storage.
	made []madeVolume
}

// madeVolume is a PersistentVolume with storage from one of Stowage's drivers.
type madeVolume struct {
	uid          types.UID
	name, handle string
}

// takeSnapshot reads the cache, or the API server itself: claims first.
func takeSnapshot(ctx context.Context, reader client.Reader, object *stowagev1alpha1.StorageBackend) (snapshot, error) {
	s := snapshot{
		driver: backend.DriverOf(object),
		live:   map[types.UID]string{}, pending: map[types.UID]bool{}, recorded: map[string]bool{},
	}
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	for _, list := range []client.ObjectList{claims, volumes} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return s, fmt.Errorf("listing what records the storage of StorageBackend %s: %w", object.Name, err)
		}
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		s.live[claim.UID] = ""
		if binder.Completed(claim) {
			s.live[claim.UID] = claim.Spec.VolumeName
		}
		s.pending[claim.UID] = provisioned.HasIntent(claim)
	}
	for i := range volumes.Items {
		s.add(&volumes.Items[i], object.Name)
	}
	return s, nil
}

// add counts a PersistentVolume. One that is being deleted still records its storage, but may
// lose it at any moment.
func (s *snapshot) add(pv *corev1.PersistentVolume, name string) {
	for _, handle := range index.HandleOf(pv) {
		s.recorded[handle] = true
	}
	if provisioned.Here(pv) && pv.DeletionTimestamp.IsZero() && pv.Spec.CSI.Driver == s.driver && slices.Contains(index.BackendOf(pv), name) {
		s.made = append(s.made, madeVolume{pv.UID, pv.Name, pv.Spec.CSI.VolumeHandle})
	}
}

// hasRecord reports whether the cluster has a record of a volume that a backend holds.
func (s *snapshot) hasRecord(held backend.Held) bool {
	return s.recorded[volume.Key(s.driver, held.ID)] || s.pending[held.Claim.UID]
}

// orphans returns the held volumes without a record that no person marked to be kept.
func (s *snapshot) orphans(held []backend.Held) []backend.Held {
	return slices.DeleteFunc(slices.Clone(held), func(volume backend.Held) bool { return volume.Retained || s.hasRecord(volume) })
}

// retained counts the held volumes without a record that a person marked to be kept.
func (s *snapshot) retained(held []backend.Held) int32 {
	count := int32(0)
	for _, volume := range held {
		if volume.Retained && !s.hasRecord(volume) {
			count++
		}
	}
	return count
}

// allRetained reports whether a person marked all of these volumes to be kept.
func allRetained(volumes []backend.Held) bool {
	return !slices.ContainsFunc(volumes, func(volume backend.Held) bool { return !volume.Retained })
}

// notHeld returns the PersistentVolumes without storage in the backend.
func notHeld(made []madeVolume, held map[string]bool) []madeVolume {
	return slices.DeleteFunc(slices.Clone(made), func(pv madeVolume) bool { return held[pv.handle] })
}

// both returns the sorted names of the volumes in both lists.
func both(some, others []madeVolume) []string {
	there := make(map[madeVolume]bool, len(others))
	for _, volume := range others {
		there[volume] = true
	}
	var names []string
	for _, volume := range some {
		if there[volume] {
			names = append(names, volume.name)
		}
	}
	slices.Sort(names)
	return names
}
