// Package provisioned has the words of dynamic provisioning: the intent that a claim
// carries from before a backend is called, the attempts, and the ids of volumes that follow
// from a claim's UID. Reconcilers of claims and volumes, and the audit, read by them whose
// storage something is. It writes nothing.
package provisioned

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// AttemptFormat is the message of the condition that counts attempts.
const AttemptFormat = "attempt %d: what was begun for the claim before is undone"

// AttemptOf is which volume of a claim is being made. It is kept in the status, where
// users can't write: by changing it they could have volumes made that nobody counts.
func AttemptOf(claim *corev1.PersistentVolumeClaim) int {
	attempt := 1
	for _, condition := range claim.Status.Conditions {
		if condition.Type == stowagev1alpha1.AttemptCondition {
			// What can't be read is the first attempt.
			_, _ = fmt.Sscanf(condition.Message, AttemptFormat, &attempt)
		}
	}
	return max(1, attempt)
}

// VolumeID is the id of the volume that is made for a claim. Whatever a user writes
// as the attempt, it is one of this claim's.
func VolumeID(claim *corev1.PersistentVolumeClaim) string {
	return backend.VolumeID(claim.UID, AttemptOf(claim))
}

// IsVolumeIDOf tells whether an id is what backend.VolumeID makes for a claim.
func IsVolumeIDOf(id string, claim types.UID) bool { return attemptIn(id, claim) > 0 }

// attemptIn is which volume of a claim an id means, 0 for none.
func attemptIn(id string, claim types.UID) int {
	rest, fits := strings.CutPrefix(id, backend.VolumeID(claim, 1))
	switch {
	case claim == "" || !fits:
		return 0
	case rest == "":
		return 1
	}
	attempt, err := strconv.Atoi(strings.TrimPrefix(rest, "-"))
	if err != nil || id != backend.VolumeID(claim, attempt) {
		return 0
	}
	return attempt
}

// Here tells whether a volume was made by one of Stowage's drivers.
func Here(pv *corev1.PersistentVolume) bool {
	driver := pv.Annotations[volume.AnnDynamicallyProvisioned]
	return driver != "" && pv.Spec.CSI != nil && pv.Spec.CSI.Driver == driver &&
		pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute] != ""
}

// MadeFor reports whether a provisioner, ours or another's, made a volume for a claim: if
// the claim took another one, be it a later one that was made for it, no pod has used it.
//
// Other provisioners name their volumes as they like. A volume that is older than the
// claim had another use before, and its data is not theirs to delete.
func MadeFor(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	driver := pv.Annotations[volume.AnnDynamicallyProvisioned]
	switch {
	case driver == "":
		return false
	case IsVolumeIDOf(pv.Name, claim.UID):
		return true
	default:
		return !backend.IsOurs(driver) && !pv.CreationTimestamp.Before(&claim.CreationTimestamp)
	}
}

// IsUndone tells whether a volume was made for an earlier attempt of a claim: a leader
// that is late recorded it, and its storage may be gone. It is reclaimed once the claim
// has another, or is gone itself.
func IsUndone(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return IsVolumeIDOf(pv.Name, claim.UID) && MadeFor(pv, claim) && attemptIn(pv.Name, claim.UID) < AttemptOf(claim)
}

// MayDelete reports whether the reclaim policy of a volume is Delete.
func MayDelete(pv *corev1.PersistentVolume) bool {
	return pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// DataSource is what a claim wants its volume to begin with, nil for nothing. The API
// server copies one of the two fields to the other where both can say it.
func DataSource(claim *corev1.PersistentVolumeClaim) *corev1.TypedObjectReference {
	if ref := claim.Spec.DataSourceRef; ref != nil {
		return ref
	}
	if ref := claim.Spec.DataSource; ref != nil {
		return &corev1.TypedObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
	return nil
}

// ClaimKind is the kind of a data source that is a claim.
const ClaimKind = "PersistentVolumeClaim"
