// Package binder decides which volume a claim gets.
//
// It is pure: it holds no client and no clock, it reads volumes and claims and
// answers. Index keeps the volumes in order and finds the smallest that fits;
// Explanation says why none did, from the same rules; BindVolume and BindClaim
// say what the objects look like once they are tied to each other.
//
// The claim reconciler calls it; nothing here writes to the API server.
package binder

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// Wish is what a claim asks of a volume.
type Wish struct {
	// Claim that asks.
	Claim *corev1.PersistentVolumeClaim
	// Node that the claim's pod was placed on. Nil: none yet, or it doesn't
	// matter.
	Node *corev1.Node
	// Delayed is true where the claim waits for its first consumer, and no node
	// is chosen: only volumes made for this very claim are taken.
	Delayed bool
}

// Cause says why a volume isn't given to a claim.
type Cause string

// Causes, in the order in which they are asked; Fits is the absence of one.
const (
	Fits                 Cause = ""
	Deleting             Cause = "being deleted"
	Failed               Cause = "failed"
	Reserved             Cause = "reserved"
	Taken                Cause = "being bound to another claim"
	OtherVolumeMode      Cause = "other volumeMode"
	OtherAccessModes     Cause = "other access modes"
	OtherAttributesClass Cause = "other volumeAttributesClass"
	OtherClass           Cause = "other class"
	OtherLabels          Cause = "not selected by the claim"
	TooSmall             Cause = "too small"
	OtherNode            Cause = "not usable on the pod's node"
)

// Fit tells whether a volume suits a wish and, if not, the first cause. A volume
// that was made for the claim by name is asked neither for its class nor for its
// labels: whoever wrote the name chose it.
func Fit(pv *corev1.PersistentVolume, wish Wish) Cause {
	claim := wish.Claim
	chosen := ReservedFor(pv, claim)
	switch {
	case !pv.DeletionTimestamp.IsZero():
		return Deleting
	case pv.Status.Phase == corev1.VolumeFailed:
		return Failed
	case pv.Spec.ClaimRef != nil && !chosen:
		return Reserved
	case volumeMode(pv.Spec.VolumeMode) != volumeMode(claim.Spec.VolumeMode):
		return OtherVolumeMode
	case !containsAll(pv.Spec.AccessModes, claim.Spec.AccessModes):
		return OtherAccessModes
	case ptr.Deref(pv.Spec.VolumeAttributesClassName, "") != ptr.Deref(claim.Spec.VolumeAttributesClassName, ""):
		return OtherAttributesClass
	case !chosen && volume.GetPersistentVolumeClass(pv) != volume.GetPersistentVolumeClaimClass(claim):
		return OtherClass
	case !chosen && !selects(claim.Spec.Selector, pv):
		return OtherLabels
	case capacityOf(pv) < RequestOf(claim):
		return TooSmall
	case wish.Node != nil && volume.CheckNodeAffinity(pv, wish.Node.Labels) != nil:
		return OtherNode
	}
	return Fits
}

// ReservedFor tells whether a volume's claimRef names this very claim: by name
// where the reference has no UID, which is how people reserve a volume for a
// claim that doesn't exist yet, else by name and UID.
func ReservedFor(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name &&
		(ref.UID == "" || ref.UID == claim.UID)
}

// TiedTo tells whether a volume is bound to this very claim, by UID: the point of
// no return of binding is behind it.
func TiedTo(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return ReservedFor(pv, claim) && pv.Spec.ClaimRef.UID == claim.UID
}

// RequestOf is how many bytes a claim asks for.
func RequestOf(claim *corev1.PersistentVolumeClaim) int64 {
	return BytesOf(claim.Spec.Resources.Requests[corev1.ResourceStorage])
}

// BytesOf is a quantity in bytes, rounded up; what is more than can be counted is
// as much as can be.
func BytesOf(quantity resource.Quantity) int64 {
	if quantity.CmpInt64(math.MaxInt64) >= 0 {
		return math.MaxInt64
	}
	return quantity.Value()
}

func capacityOf(pv *corev1.PersistentVolume) int64 {
	return BytesOf(pv.Spec.Capacity[corev1.ResourceStorage])
}

func volumeMode(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	return ptr.Deref(mode, corev1.PersistentVolumeFilesystem)
}

func containsAll(has, wanted []corev1.PersistentVolumeAccessMode) bool {
	return !slices.ContainsFunc(wanted, func(mode corev1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(has, mode)
	})
}

// selects tells whether a claim's selector, if it has one, takes a volume. The
// API server refuses claims whose selector can't be parsed.
func selects(selector *metav1.LabelSelector, pv *corev1.PersistentVolume) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(pv.Labels))
}
