// Package provisioned has the vocabulary of dynamic provisioning: pending operations,
// attempts, and volume ids. A claim carries the pending operation from before a backend is
// called. The ids follow from the claim's UID. Reconcilers of claims and volumes, and the
// audit, use the package to find the claim that storage belongs to. It writes nothing.
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

// AttemptOf returns the number of the attempt to provision a claim's volume. It is in the
// status, which users cannot write: by changing it they could create volumes that nothing
// counts.
func AttemptOf(claim *corev1.PersistentVolumeClaim) int {
	attempt := 1
	for _, condition := range claim.Status.Conditions {
		if condition.Type == stowagev1alpha1.AttemptCondition {
			// An unreadable message counts as the first attempt.
			_, _ = fmt.Sscanf(condition.Message, AttemptFormat, &attempt)
		}
	}
	return max(1, attempt)
}

// VolumeID returns the id of the volume that is provisioned for a claim. Whatever the attempt,
// the id belongs to this claim.
func VolumeID(claim *corev1.PersistentVolumeClaim) string {
	return backend.VolumeID(claim.UID, AttemptOf(claim))
}

// IsVolumeIDOf reports whether backend.VolumeID makes an id for a claim.
func IsVolumeIDOf(id string, claim types.UID) bool { return attemptIn(id, claim) > 0 }

// attemptIn returns the attempt that an id of a claim means, or 0 if it is not the claim's.
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

// Here reports whether Stowage provisioned a volume. One of another driver has the label with
// which Stowage creates it. A volume that the driver's own provisioner made has none.
func Here(pv *corev1.PersistentVolume) bool {
	driver := pv.Annotations[volume.AnnDynamicallyProvisioned]
	switch {
	case driver == "" || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != driver:
		return false
	case backend.IsOurs(driver):
		return pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute] != ""
	default:
		return pv.Labels[stowagev1alpha1.BackendLabel] == driver
	}
}

// ReclaimFinalizer returns the finalizer that keeps a volume object of a driver until its storage
// is gone. For a driver that isn't one of Stowage's it is that of external-provisioner, which
// Stowage stands in for: either can take over from the other.
func ReclaimFinalizer(driver string) string {
	if backend.IsOurs(driver) {
		return stowagev1alpha1.ReclaimFinalizer
	}
	return volume.PVDeletionProtectionFinalizer
}

// MadeFor reports whether a provisioner, ours or a foreign one, made a volume for a claim. If
// the claim took another volume, even a later one that was made for it, no pod has used this
// one.
//
// Foreign provisioners choose their volume names freely. A volume that is older than the claim
// had another use before, and its data must not be deleted.
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

// IsUndone reports whether a volume was made for an earlier attempt of a claim. A stale leader
// recorded it, and its storage may be gone. It is reclaimed once the claim has another volume,
// or is gone itself.
func IsUndone(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return IsVolumeIDOf(pv.Name, claim.UID) && MadeFor(pv, claim) && attemptIn(pv.Name, claim.UID) < AttemptOf(claim)
}

// MayDelete reports whether the reclaim policy of a volume is Delete.
func MayDelete(pv *corev1.PersistentVolume) bool {
	return pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}
