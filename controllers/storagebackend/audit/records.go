package audit

import (
	"context"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/volume"
)

// records are what the cluster records of the storage of one backend.
type records struct {
	driver string
	// live maps the UIDs of live claims to the volumes that they are bound to, or "". pending
	// has those of them with a pending operation.
	live    map[types.UID]string
	pending map[types.UID]bool
	// recorded has the driver and handle of all PersistentVolumes, and of all VolumeSnapshotContents.
	// snapshots has the UIDs of the VolumeSnapshots that a content of the driver is for.
	recorded  map[string]bool
	snapshots map[types.UID]bool
	// made are the PersistentVolumes of the backend that must have storage.
	made []madeVolume
}

// madeVolume is a PersistentVolume with storage from one of Stowage's drivers.
type madeVolume struct {
	uid          types.UID
	name, handle string
}

// readRecords reads the cache, or the API server itself: claims first.
func readRecords(ctx context.Context, reader client.Reader, object *stowagev1alpha1.StorageBackend) (records, error) {
	r := records{
		driver: backend.DriverOf(object),
		live:   map[types.UID]string{}, pending: map[types.UID]bool{}, recorded: map[string]bool{}, snapshots: map[types.UID]bool{},
	}
	claims, volumes, contents := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &snapshotv1.VolumeSnapshotContentList{}
	for _, list := range []client.ObjectList{claims, volumes, contents} {
		err := reader.List(ctx, list, client.UnsafeDisableDeepCopy)
		if list == contents && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)) {
			err = nil // a cluster without the CRDs has no contents
		}
		if err != nil {
			return r, fmt.Errorf("listing what records the storage of StorageBackend %s: %w", object.Name, err)
		}
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		r.live[claim.UID] = ""
		if binder.Completed(claim) {
			r.live[claim.UID] = claim.Spec.VolumeName
		}
		r.pending[claim.UID] = provisioned.HasIntent(claim)
	}
	for i := range volumes.Items {
		r.add(&volumes.Items[i], object.Name)
	}
	for i := range contents.Items {
		r.addContent(&contents.Items[i])
	}
	return r, nil
}

// add counts a PersistentVolume. One that is being deleted still records its storage, but may
// lose it at any moment.
func (r *records) add(pv *corev1.PersistentVolume, name string) {
	for _, handle := range index.HandleOf(pv) {
		r.recorded[handle] = true
	}
	if provisioned.Here(pv) && pv.DeletionTimestamp.IsZero() && pv.Spec.CSI.Driver == r.driver && slices.Contains(index.BackendOf(pv), name) {
		r.made = append(r.made, madeVolume{pv.UID, pv.Name, pv.Spec.CSI.VolumeHandle})
	}
}

// addContent counts a VolumeSnapshotContent, which exists before its snapshot does, and after it.
func (r *records) addContent(content *snapshotv1.VolumeSnapshotContent) {
	if content.Spec.Driver != r.driver {
		return
	}
	r.snapshots[content.Spec.VolumeSnapshotRef.UID] = true
	if handle := content.Spec.Source.SnapshotHandle; handle != nil {
		r.recorded[volume.Key(r.driver, *handle)] = true
	}
	if status := content.Status; status != nil && status.SnapshotHandle != nil {
		r.recorded[volume.Key(r.driver, *status.SnapshotHandle)] = true
	}
}

// hasRecord reports whether the cluster has a record of what a backend holds.
func (r *records) hasRecord(held backend.Held) bool {
	switch {
	case r.recorded[volume.Key(r.driver, held.ID)]:
		return true
	case held.Snapshot != "":
		return r.snapshots[held.Snapshot]
	default:
		return r.pending[held.Claim.UID]
	}
}

// isKept reports whether storage may be there without a record: a person marked it to be kept, or a CSI call
// made it.
func isKept(held backend.Held) bool {
	return held.Retained || named.IsVolume(held.ID) || named.IsSnapshot(held.ID)
}

// orphans returns what is held without a record, and isn't kept.
func (r *records) orphans(held []backend.Held) []backend.Held {
	return slices.DeleteFunc(slices.Clone(held), func(one backend.Held) bool { return isKept(one) || r.hasRecord(one) })
}

// retained counts what is held without a record, and kept.
func (r *records) retained(held []backend.Held) int32 {
	count := int32(0)
	for _, one := range held {
		if isKept(one) && !r.hasRecord(one) {
			count++
		}
	}
	return count
}

// allRetained reports whether all of it is kept.
func allRetained(held []backend.Held) bool {
	return !slices.ContainsFunc(held, func(one backend.Held) bool { return !isKept(one) })
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
