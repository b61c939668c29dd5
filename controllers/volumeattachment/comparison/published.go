package comparison

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
)

// published compares with a CSI driver's list, in which volumes and nodes of other clusters are, too. An
// attachment counts as missing once two lists in a row have its volume, and not on its node. Only
// attachments of volumes that the driver made for this cluster, to nodes of this cluster, may dangle.
func (r *Comparer) published(
	ctx context.Context, object *stowagev1alpha1.StorageBackend, lister backend.PublicationLister, recorded []recordedAttachment,
) (listed []backend.Attached, missing []recordedAttachment, err error) {
	handles, made, err := r.handles(ctx, object, recorded)
	if err != nil {
		return nil, nil, err
	}
	on, err := lister.Publications(ctx, handles)
	if err != nil {
		return nil, nil, err
	}
	for _, attachment := range recorded {
		id := attachment.Annotations[attachintent.DriverIDAnnotation]
		nodes, known := on[attachment.intent.Volume]
		if known && id != "" && !slices.Contains(nodes, id) {
			missing = append(missing, attachment)
		}
	}
	known, err := r.nodesOf(ctx, object)
	if err != nil {
		return nil, nil, err
	}
	for handle := range made {
		for _, id := range on[handle] {
			if known[id] != "" {
				listed = append(listed, backend.Attached{ID: handle, DriverID: id})
			}
		}
	}
	return listed, r.markMissing(object.Name, missing), nil
}

// handles returns the handles of the volumes that the comparison is about, and those of them that the
// driver made for a claim of this cluster.
func (r *Comparer) handles(
	ctx context.Context, object *stowagev1alpha1.StorageBackend, recorded []recordedAttachment,
) (all, made map[string]bool, err error) {
	volumes := &corev1.PersistentVolumeList{}
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByBackend: object.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing the volumes of StorageBackend %s: %w", object.Name, err)
	}
	all, made = map[string]bool{}, map[string]bool{}
	for i := range volumes.Items {
		is, err := r.drivers.MadeVolume(ctx, &volumes.Items[i])
		if err != nil {
			return nil, nil, err
		}
		if is {
			made[volumes.Items[i].Spec.CSI.VolumeHandle], all[volumes.Items[i].Spec.CSI.VolumeHandle] = true, true
		}
	}
	for _, attachment := range recorded {
		all[attachment.intent.Volume] = true
	}
	return all, made, nil
}

// nodesOf returns the nodes on which a driver is registered, by the ids that it gave them. An id of two
// nodes names none.
func (r *Comparer) nodesOf(ctx context.Context, object *stowagev1alpha1.StorageBackend) (map[string]string, error) {
	registered := &storagev1.CSINodeList{}
	if err := r.client.List(ctx, registered, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the CSINodes: %w", err)
	}
	names, driver := map[string]string{}, backend.DriverOf(object)
	for i := range registered.Items {
		for _, of := range registered.Items[i].Spec.Drivers {
			if of.Name != driver {
				continue
			}
			name := registered.Items[i].Name
			if _, taken := names[of.NodeID]; taken {
				name = ""
			}
			names[of.NodeID] = name
		}
	}
	return names, nil
}

// markMissing stores the attachments that a list doesn't have, and returns those that the list before
// it didn't have either.
func (r *Comparer) markMissing(name string, missing []recordedAttachment) (again []recordedAttachment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, now := r.missing[name], map[types.UID]bool{}
	for _, attachment := range missing {
		now[attachment.UID] = true
		if before[attachment.UID] {
			again = append(again, attachment)
		}
	}
	if r.missing == nil {
		r.missing = map[string]map[types.UID]bool{}
	}
	r.missing[name] = now
	if len(now) == 0 {
		delete(r.missing, name)
	}
	return again
}
