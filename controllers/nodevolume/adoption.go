package nodevolume

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// uidLength is the length of the UIDs that API servers generate.
const uidLength = 36

// isLocal reports whether a PersistentVolume refers to a volume on a node's disk. One
// that is being deleted recreates nothing: its policy could remove data that a person kept by
// removing a finalizer.
func isLocal(pv *corev1.PersistentVolume) bool {
	return pv.DeletionTimestamp.IsZero() && pv.Spec.CSI != nil && pv.Spec.CSI.Driver == stowagev1alpha1.LocalDriver &&
		pv.Spec.CSI.VolumeHandle != "" && len(index.BackendOf(pv)) > 0
}

// foundOn returns what the agent found on a disk for a volume without a NodeVolume. The status
// may list only some of the volumes. Those that sort after the last listed one count as
// found, too: the agent adopts nothing that is not there.
func foundOn(disk *stowagev1alpha1.NodeDisk, handle string) (stowagev1alpha1.UnrecordedVolume, bool) {
	found := disk.Status.Unrecorded
	if found == nil || disk.Status.Identity == nil || !meta.IsStatusConditionTrue(disk.Status.Conditions, stowagev1alpha1.ReadyCondition) {
		return stowagev1alpha1.UnrecordedVolume{}, false
	}
	at := slices.IndexFunc(found.Volumes, func(volume stowagev1alpha1.UnrecordedVolume) bool { return volume.ID == handle })
	switch last := len(found.Volumes) - 1; {
	case at >= 0:
		return found.Volumes[at], true
	case int(found.Count) > len(found.Volumes) && last >= 0 && handle > found.Volumes[last].ID:
		return stowagev1alpha1.UnrecordedVolume{ID: handle}, true
	default:
		return stowagev1alpha1.UnrecordedVolume{}, false
	}
}

// nodeVolumeFor returns the NodeVolume of a volume that was found on a disk, with its
// original identity. It is Invalid if PersistentVolume and disk do not agree.
func nodeVolumeFor(pv *corev1.PersistentVolume, disk *stowagev1alpha1.NodeDisk, found stowagev1alpha1.UnrecordedVolume) (*stowagev1alpha1.NodeVolume, error) {
	source := pv.Spec.CSI
	at := path.Join(string(disk.Spec.Path), found.ID)
	if recorded := source.VolumeAttributes[stowagev1alpha1.PathAttribute]; recorded != at {
		return nil, backend.Invalid.Errorf("the volumeAttribute %s is %q, and the volume is in %s: create the PersistentVolume again with that",
			stowagev1alpha1.PathAttribute, recorded, at)
	}
	layout := stowagev1alpha1.LocalLayout(source.VolumeAttributes[stowagev1alpha1.LayoutAttribute])
	if found.Layout != "" && layout != found.Layout || layout == "" {
		return nil, backend.Invalid.Errorf("the volumeAttribute %s is %q, and the volume's owner record says %q: create the PersistentVolume again with that",
			stowagev1alpha1.LayoutAttribute, layout, found.Layout)
	}
	claim, err := originalClaim(pv, found)
	if err != nil {
		return nil, err
	}
	volume := &stowagev1alpha1.NodeVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: found.ID, Labels: map[string]string{stowagev1alpha1.BackendLabel: disk.Spec.Backend},
			Finalizers: []string{stowagev1alpha1.NodeVolumeFinalizer},
		},
		Spec: stowagev1alpha1.NodeVolumeSpec{
			NodeName: disk.Spec.NodeName, Backend: disk.Spec.Backend, Path: disk.Spec.Path,
			Capacity: pv.Spec.Capacity[corev1.ResourceStorage], ReservedCapacity: disk.Spec.ReservedCapacity,
			VolumeMode: ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem), Layout: layout, ClaimRef: claim, Adopt: true,
		},
	}
	if layout == stowagev1alpha1.LayoutImage && volume.Spec.VolumeMode != corev1.PersistentVolumeBlock {
		volume.Spec.FSType = source.FSType
	}
	return volume, nil
}

// originalClaim returns the claim that a found volume was made for, from its owner record,
// else from the PersistentVolume. The volume's id contains the claim's UID in any case.
func originalClaim(pv *corev1.PersistentVolume, found stowagev1alpha1.UnrecordedVolume) (stowagev1alpha1.ClaimReference, error) {
	if claim := found.ClaimRef(); provisioned.IsVolumeIDOf(found.ID, claim.UID) && claim.Namespace != "" && claim.Name != "" {
		return claim, nil
	}
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return stowagev1alpha1.ClaimReference{}, backend.Invalid.Errorf("volume %s on its disk has no owner record: name the claim that it was made for in spec.claimRef, "+
			"without a uid", found.ID)
	}
	claim := stowagev1alpha1.ClaimReference{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
	if provisioned.IsVolumeIDOf(found.ID, claim.UID) {
		return claim, nil
	}
	if start := len(backend.VolumeID("", 1)); len(found.ID) >= start+uidLength {
		claim.UID = types.UID(found.ID[start : start+uidLength])
	}
	if !provisioned.IsVolumeIDOf(found.ID, claim.UID) {
		return claim, backend.Invalid.Errorf("the volumeHandle %s isn't one that Stowage creates: pvc-<uid of the claim>", found.ID)
	}
	return claim, nil
}
