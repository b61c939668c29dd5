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

// standsForLocal reports whether a PersistentVolume refers to a volume on a node's disk. One
// that is being deleted recreates nothing: its policy could remove data that a person kept by
// removing a finalizer.
func standsForLocal(pv *corev1.PersistentVolume) bool {
	return pv.DeletionTimestamp.IsZero() && pv.Spec.CSI != nil && pv.Spec.CSI.Driver == stowagev1alpha1.LocalDriver &&
		pv.Spec.CSI.VolumeHandle != "" && len(index.BackendOf(pv)) > 0
}

// offer returns what the agent found on a disk for a volume without a NodeVolume. The status
// may list only some of the volumes. Those that sort after the last listed one count as
// offered, too: the agent adopts nothing that is not there.
func offer(disk *stowagev1alpha1.NodeDisk, handle string) (stowagev1alpha1.UnrecordedVolume, bool) {
	there := disk.Status.Unrecorded
	if there == nil || disk.Status.Identity == nil || !meta.IsStatusConditionTrue(disk.Status.Conditions, stowagev1alpha1.ReadyCondition) {
		return stowagev1alpha1.UnrecordedVolume{}, false
	}
	at := slices.IndexFunc(there.Volumes, func(volume stowagev1alpha1.UnrecordedVolume) bool { return volume.ID == handle })
	switch last := len(there.Volumes) - 1; {
	case at >= 0:
		return there.Volumes[at], true
	case int(there.Count) > len(there.Volumes) && last >= 0 && handle > there.Volumes[last].ID:
		return stowagev1alpha1.UnrecordedVolume{ID: handle}, true
	default:
		return stowagev1alpha1.UnrecordedVolume{}, false
	}
}

// nodeVolumeFor returns the NodeVolume of a volume that was found on a disk, with its
// original identity. It is Invalid if PersistentVolume and disk do not agree.
func nodeVolumeFor(pv *corev1.PersistentVolume, disk *stowagev1alpha1.NodeDisk, there stowagev1alpha1.UnrecordedVolume) (*stowagev1alpha1.NodeVolume, error) {
	source := pv.Spec.CSI
	at := path.Join(string(disk.Spec.Path), there.ID)
	if wanted := source.VolumeAttributes[stowagev1alpha1.PathAttribute]; wanted != at {
		return nil, backend.Invalid.Errorf("the volumeAttribute %s is %q, and the volume lies in %s: make the PersistentVolume anew with that",
			stowagev1alpha1.PathAttribute, wanted, at)
	}
	layout := stowagev1alpha1.LocalLayout(source.VolumeAttributes[stowagev1alpha1.LayoutAttribute])
	if there.Layout != "" && layout != there.Layout || layout == "" {
		return nil, backend.Invalid.Errorf("the volumeAttribute %s is %q, and the volume's owner record says %q: make the PersistentVolume anew with that",
			stowagev1alpha1.LayoutAttribute, layout, there.Layout)
	}
	claim, err := originalClaim(pv, there)
	if err != nil {
		return nil, err
	}
	volume := &stowagev1alpha1.NodeVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: there.ID, Labels: map[string]string{stowagev1alpha1.BackendLabel: disk.Spec.Backend},
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
func originalClaim(pv *corev1.PersistentVolume, there stowagev1alpha1.UnrecordedVolume) (stowagev1alpha1.ClaimReference, error) {
	if claim := there.ClaimRef(); provisioned.IsVolumeIDOf(there.ID, claim.UID) && claim.Namespace != "" && claim.Name != "" {
		return claim, nil
	}
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return stowagev1alpha1.ClaimReference{}, backend.Invalid.Errorf("volume %s on its disk has no owner record: name the claim that it was made for in spec.claimRef, "+
			"without a uid", there.ID)
	}
	claim := stowagev1alpha1.ClaimReference{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
	if provisioned.IsVolumeIDOf(there.ID, claim.UID) {
		return claim, nil
	}
	if start := len(backend.VolumeID("", 1)); len(there.ID) >= start+uidLength {
		claim.UID = types.UID(there.ID[start : start+uidLength])
	}
	if !provisioned.IsVolumeIDOf(there.ID, claim.UID) {
		return claim, backend.Invalid.Errorf("the volumeHandle %s isn't one that Stowage makes: pvc-<uid of the claim>", there.ID)
	}
	return claim, nil
}
