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

// census is what the cluster records of the storage of one backend.
type census struct {
	driver string
	// living are the volumes that the claims which are there are bound to, "" where
	// they aren't; making those of them for which storage may be on its way, by UID.
	living map[types.UID]string
	making map[types.UID]bool
	// recorded are the driver and handle of all volume objects.
	recorded map[string]bool
	// made are the volume objects of the backend that are to have storage.
	made []madeVolume
}

// madeVolume is a volume object whose storage one of Stowage's drivers made.
type madeVolume struct {
	uid          types.UID
	name, handle string
}

// takeCensus asks the cache, or the API server itself: claims first.
func takeCensus(ctx context.Context, reader client.Reader, object *stowagev1alpha1.StorageBackend) (census, error) {
	c := census{
		driver: backend.DriverOf(object),
		living: map[types.UID]string{}, making: map[types.UID]bool{}, recorded: map[string]bool{},
	}
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	for _, list := range []client.ObjectList{claims, volumes} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return c, fmt.Errorf("listing what records the storage of StorageBackend %s: %w", object.Name, err)
		}
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		c.living[claim.UID] = ""
		if binder.Completed(claim) {
			c.living[claim.UID] = claim.Spec.VolumeName
		}
		c.making[claim.UID] = provisioned.HasIntent(claim)
	}
	for i := range volumes.Items {
		c.add(&volumes.Items[i], object.Name)
	}
	return c, nil
}

// add counts a volume object. One that is being deleted still records its storage,
// but may lose it at any moment.
func (c *census) add(pv *corev1.PersistentVolume, name string) {
	for _, handle := range index.HandleOf(pv) {
		c.recorded[handle] = true
	}
	if provisioned.Here(pv) && pv.DeletionTimestamp.IsZero() && pv.Spec.CSI.Driver == c.driver && slices.Contains(index.BackendOf(pv), name) {
		c.made = append(c.made, madeVolume{pv.UID, pv.Name, pv.Spec.CSI.VolumeHandle})
	}
}

// knows tells whether something in the cluster answers for what a backend holds.
func (c *census) knows(held backend.Held) bool {
	return c.recorded[volume.Key(c.driver, held.ID)] || c.making[held.Claim.UID]
}

// orphans are those of the held volumes that nothing answers for, and that nobody
// said to keep.
func (c *census) orphans(held []backend.Held) []backend.Held {
	return slices.DeleteFunc(slices.Clone(held), func(volume backend.Held) bool { return volume.Retained || c.knows(volume) })
}

// retained counts the held volumes that nothing answers for because a person said to
// keep them.
func (c *census) retained(held []backend.Held) int32 {
	count := int32(0)
	for _, volume := range held {
		if volume.Retained && !c.knows(volume) {
			count++
		}
	}
	return count
}

// allRetained reports whether a person said of each of these volumes to keep it.
func allRetained(volumes []backend.Held) bool {
	return !slices.ContainsFunc(volumes, func(volume backend.Held) bool { return !volume.Retained })
}

// notHeld are the volume objects whose storage isn't held.
func notHeld(made []madeVolume, held map[string]bool) []madeVolume {
	return slices.DeleteFunc(slices.Clone(made), func(pv madeVolume) bool { return held[pv.handle] })
}

// both are the names, in order, of the volumes that are in both lists.
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
