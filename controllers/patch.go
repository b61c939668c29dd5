package controllers

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// writtenPatch is a patch that is written out, as those are that every bind takes.
// One that is computed from two objects costs more than all the rest of a bind:
// a deep copy, two encodings, two decodings and a comparison.
type writtenPatch struct {
	kind types.PatchType
	body any
}

// Type implements client.Patch.
func (p writtenPatch) Type() types.PatchType { return p.kind }

// Data implements client.Patch.
func (p writtenPatch) Data(client.Object) ([]byte, error) { return json.Marshal(p.body) }

// metadataPatch says what changes in metadata, and of which version.
type metadataPatch struct {
	// ResourceVersion is the fence: of two who read the same version, one writes.
	ResourceVersion string             `json:"resourceVersion"`
	Annotations     map[string]*string `json:"annotations,omitempty"`
	Finalizers      []string           `json:"finalizers,omitzero"`
}

func metadataChange(before, after metav1.Object) metadataPatch {
	change := metadataPatch{
		ResourceVersion: before.GetResourceVersion(),
		Annotations:     changes(before.GetAnnotations(), after.GetAnnotations(), func(a, b string) bool { return a == b }),
	}
	if !slices.Equal(before.GetFinalizers(), after.GetFinalizers()) {
		change.Finalizers = append([]string{}, after.GetFinalizers()...)
	}
	return change
}

// specPatch changes metadata and spec.
func specPatch[S any](metadata metadataPatch, spec S) client.Patch {
	return writtenPatch{types.MergePatchType, struct {
		Metadata metadataPatch `json:"metadata"`
		Spec     S             `json:"spec"`
	}{metadata, spec}}
}

// claimRefPatch ties a volume to the claim of after. Null is what must not stay of
// an earlier reference.
func claimRefPatch(before, after *corev1.PersistentVolume) client.Patch {
	type reference struct {
		*corev1.ObjectReference
		ResourceVersion *string `json:"resourceVersion"`
		FieldPath       *string `json:"fieldPath"`
	}
	type spec struct {
		ClaimRef reference `json:"claimRef"`
	}
	return specPatch(metadataChange(before, after), spec{reference{ObjectReference: after.Spec.ClaimRef}})
}

// volumeNamePatch ties a claim to the volume that after names.
func volumeNamePatch(before, after *corev1.PersistentVolumeClaim) client.Patch {
	type spec struct {
		VolumeName string `json:"volumeName"`
	}
	return specPatch(metadataChange(before, after), spec{after.Spec.VolumeName})
}

// volumePhasePatch sets a volume's phase and why.
func volumePhasePatch(pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase, message string) client.Patch {
	type status struct {
		Phase   corev1.PersistentVolumePhase `json:"phase"`
		Message string                       `json:"message"`
		Reason  string                       `json:"reason"`
	}
	return writtenPatch{types.MergePatchType, struct {
		Metadata metadataPatch `json:"metadata"`
		Status   status        `json:"status"`
	}{metadataPatch{ResourceVersion: pv.ResourceVersion}, status{Phase: phase, Message: message}}}
}

// boundStatusPatch sets what a claim got: what differs, because the rest may be
// another's to write now. It is a strategic one, because a merge patch would
// replace the conditions of others.
func boundStatusPatch(before corev1.PersistentVolumeClaimStatus, after *corev1.PersistentVolumeClaim) client.Patch {
	type status struct {
		Phase       corev1.PersistentVolumeClaimPhase          `json:"phase,omitempty"`
		AccessModes []corev1.PersistentVolumeAccessMode        `json:"accessModes,omitempty"`
		Capacity    map[corev1.ResourceName]*resource.Quantity `json:"capacity,omitempty"`
		// Class points to nil where the claim has none any more.
		Class      **string                                `json:"currentVolumeAttributesClassName,omitempty"`
		Conditions []corev1.PersistentVolumeClaimCondition `json:"conditions"`
	}
	change := status{
		Capacity:   changes(before.Capacity, after.Status.Capacity, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }),
		Conditions: ownConditions(after),
	}
	if before.Phase != after.Status.Phase {
		change.Phase = after.Status.Phase
	}
	if !slices.Equal(before.AccessModes, after.Status.AccessModes) {
		change.AccessModes = after.Status.AccessModes
	}
	if !ptr.Equal(before.CurrentVolumeAttributesClassName, after.Status.CurrentVolumeAttributesClassName) {
		change.Class = &after.Status.CurrentVolumeAttributesClassName
	}
	return writtenPatch{types.StrategicMergePatchType, struct {
		Metadata identity `json:"metadata"`
		Status   status   `json:"status"`
	}{identity{after.UID}, change}}
}

// identity is the fence of a status that doesn't depend on the object's version: what
// is said of one object is not said of the next that has its name.
type identity struct {
	UID types.UID `json:"uid"`
}

// claimStatusPatch is the patch from before to after, of this very claim.
func claimStatusPatch(before *corev1.PersistentVolumeClaim, options ...client.MergeFromOption) client.Patch {
	anybody := before.DeepCopy()
	anybody.UID = ""
	return client.StrategicMergeFrom(anybody, options...)
}

// ownConditions are those that a bound claim gets here.
func ownConditions(claim *corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaimCondition {
	return slices.DeleteFunc(slices.Clone(claim.Status.Conditions), func(condition corev1.PersistentVolumeClaimCondition) bool {
		return condition.Type != stowagev1alpha1.BindableCondition && condition.Type != corev1.PersistentVolumeClaimUnused
	})
}

// changes are the new values of what differs, and nil for what is gone.
func changes[K comparable, V any](before, after map[K]V, equal func(a, b V) bool) map[K]*V {
	changed := map[K]*V{}
	for key, value := range after {
		if old, known := before[key]; !known || !equal(old, value) {
			changed[key] = &value
		}
	}
	for key := range before {
		if _, kept := after[key]; !kept {
			changed[key] = nil
		}
	}
	return changed
}
