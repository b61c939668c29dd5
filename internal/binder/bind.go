package binder

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

// BindVolume ties a volume to a claim: the point of no return. The annotation records that a
// controller, not a person, chose the claim, so that the choice is undone when the claim is
// deleted. It reports whether anything changed.
func BindVolume(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if TiedTo(pv, claim) {
		return false
	}
	if ReservedFor(pv, claim) {
		// A person wrote the name, maybe over an earlier choice of a controller.
		delete(pv.Annotations, volume.AnnBoundByController)
	} else {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, volume.AnnBoundByController, "yes")
	}
	pv.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: "v1",
		Kind:       "PersistentVolumeClaim",
		Namespace:  claim.Namespace,
		Name:       claim.Name,
		UID:        claim.UID,
	}
	return true
}

// UnbindVolume undoes BindVolume and keeps what a person wrote: a claimRef without the
// annotation keeps its name and loses its UID. It reports whether anything changed.
func UnbindVolume(pv *corev1.PersistentVolume) bool {
	if pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
		return false
	}
	if pv.Annotations[volume.AnnBoundByController] != "" {
		pv.Spec.ClaimRef = nil
		delete(pv.Annotations, volume.AnnBoundByController)
		return true
	}
	pv.Spec.ClaimRef.UID = ""
	pv.Spec.ClaimRef.ResourceVersion = ""
	return true
}

// BindClaim ties a claim to a volume, once the volume is tied to the claim. It reports whether
// anything changed.
func BindClaim(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	changed := false
	if claim.Spec.VolumeName == "" {
		claim.Spec.VolumeName = pv.Name
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBoundByController, "yes")
		changed = true
	}
	if !Completed(claim) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
		changed = true
	}
	return changed
}

// Completed reports whether binding a claim is past its last spec write. From then on a
// missing volume means lost data, not a volume still to come.
func Completed(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && claim.Annotations[volume.AnnBindCompleted] != ""
}
